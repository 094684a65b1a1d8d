"""Settings and trials of the claims on attention sinks."""
