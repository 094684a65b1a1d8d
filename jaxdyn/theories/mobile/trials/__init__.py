"""Settings and trials of the counts of MobileLLM."""
