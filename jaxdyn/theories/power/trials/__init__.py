"""Transformers in training."""
