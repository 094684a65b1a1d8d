"""What the theory predicts: the largest margin, and a network that has it."""
