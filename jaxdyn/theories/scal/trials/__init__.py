"""Settings and trials of scaling laws: exact laws, noisy ones, a linear model, and a ladder of language models."""
