"""Settings and trials of the claims on how superposition emerges."""
