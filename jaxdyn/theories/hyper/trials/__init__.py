"""Settings and trials of the claims on the hypercube."""
