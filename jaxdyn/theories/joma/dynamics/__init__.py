"""What JoMA predicts: invariants, and the dynamics of the linear, the nonlinear and the hierarchical case."""
