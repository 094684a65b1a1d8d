"""What the theory predicts: the path of the predictor under small weight decay."""
