"""Settings and trials of the claims on navigation, and of a transformer that learns shortest paths."""
