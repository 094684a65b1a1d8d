"""Settings and trials of the claims on contextual sparsity."""
