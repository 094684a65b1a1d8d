"""Settings and trials of the claims on heavy hitters."""
