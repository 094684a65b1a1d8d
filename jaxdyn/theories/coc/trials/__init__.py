"""The trials of training with continuous thoughts."""
