"""Settings and trials of the claims on neural collapse."""
