"""A network that adds modulo M by construction: cosines with random phases (arXiv:2301.02679)."""
