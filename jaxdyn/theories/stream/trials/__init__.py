"""Settings and trials of the claims on streaming caches."""
