"""The spectrum of a rolling window of updates."""
