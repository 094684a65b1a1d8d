"""The runs behind the claims: settings, and the network in training beside the theory's prediction."""
