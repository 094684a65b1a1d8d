"""The setting of arXiv:2501.04697: sizes, rate and steps of its experiments on modular addition, from the authors' scripts."""

MODULUS, NODES, SHARE = 113, 200, 0.4
RATE, COLLAPSE_RATE = 0.01, 0.0005  # of figures 1 and 4, and of figure 2
STEPS = {"collapse": 20_000, "orthogonal": 300, "stablemax": 80_000}
