"""The laboratory: one transformer and its variants in training, laws read along it, and what theory says of each next to it."""
