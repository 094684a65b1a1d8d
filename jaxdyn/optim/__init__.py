"""Optimizers that optax lacks, or that a paper's code runs in a way of its own, as optax transformations."""
