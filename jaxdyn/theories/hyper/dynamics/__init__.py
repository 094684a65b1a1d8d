"""What the theory predicts: contrastive losses of codes in closed form, and the spectral loss of linear encoders."""
