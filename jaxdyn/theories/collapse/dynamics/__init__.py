"""What the theory predicts: the minimum of the unconstrained-features model in closed form."""
