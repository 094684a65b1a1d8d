"""Synthetic data: pure functions of a key."""
