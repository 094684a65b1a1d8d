"""What the theory predicts: the direction of the largest margin."""
