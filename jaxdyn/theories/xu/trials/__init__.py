"""Networks on a group, and the spectrum of their updates along training."""
