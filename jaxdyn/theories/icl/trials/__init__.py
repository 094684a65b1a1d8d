"""Settings and trials of the claims on in-context regression."""
