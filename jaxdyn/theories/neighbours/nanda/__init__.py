"""Progress measures for grokking on modular addition, in a one-layer transformer (arXiv 2301.05217)."""
