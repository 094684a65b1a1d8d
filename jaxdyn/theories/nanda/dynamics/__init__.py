"""What the theory predicts: the trigonometric algorithm, and the progress measures made from it."""
