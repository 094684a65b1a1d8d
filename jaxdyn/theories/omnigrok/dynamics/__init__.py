"""What the theory predicts: the norm and the time at which a network generalises."""
