"""Settings and trials of the claims on codes among text."""
