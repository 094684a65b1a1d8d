"""Settings and trials of the claims on max-margin token selection."""
