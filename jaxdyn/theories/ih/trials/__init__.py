"""Settings and trials of the claims on statistical induction heads."""
