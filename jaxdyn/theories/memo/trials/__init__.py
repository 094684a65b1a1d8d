"""Settings and trials of the claims on memorisation."""
