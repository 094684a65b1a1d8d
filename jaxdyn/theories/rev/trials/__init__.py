"""The runs behind the claims: settings, and networks in training beside the theory's predictions."""
