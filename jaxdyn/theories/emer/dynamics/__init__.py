"""What the theory predicts: two numbers in the place of the full matrix, and two for the answer."""
