"""Numbers to compare with: the published table of Figure 6, and independent calculations where the paper shows pictures only.

One place for claims, experiments and benchmarks. Entropies are in nats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Figure 6 (arXiv:2305.16380): mean and standard deviation over 10 seeds of the entropy of attention among a class's own tokens
# after 100 iterations; two classes per query. By the number of queries, then rows: rate of Z, columns: rate of Y over it.
SEEDS = 10
NEXT = 2
LRS = (0.5, 1.0, 2.0, 3.0)
RATIOS = (1.0, 2.0, 5.0, 10.0)
_TABLE = {
    1: """1.971 .028  2.007 .032  2.066 .017  2.092 .016
          1.871 .052  1.937 .052  2.022 .036  2.053 .030
          1.699 .101  1.810 .099  1.934 .068  1.900 .200
          1.551 .155  1.708 .152  1.786 .170  1.825 .331""",
    3: """2.019 .010  1.988 .012  2.031 .007  2.063 .005
          1.963 .015  1.920 .018  1.982 .009  2.024 .008
          1.842 .024  1.809 .027  1.899 .018  1.955 .020
          1.737 .032  1.715 .038  1.821 .030  1.839 .100""",
    5: """2.026 .005  1.994 .007  2.020 .007  2.055 .006
          1.995 .007  1.931 .011  1.971 .010  2.014 .009
          1.906 .012  1.816 .022  1.884 .020  1.926 .025
          1.817 .021  1.718 .032  1.802 .033  1.831 .050""",
    10: """2.033 .004  2.012 .004  2.018 .004  2.051 .003
           2.027 .003  1.975 .005  1.976 .006  2.015 .006
           1.990 .005  1.888 .009  1.899 .013  1.947 .015
           1.940 .006  1.805 .013  1.829 .019  1.875 .023""",
}
FIG6 = {queries: np.array(text.split(), float).reshape(len(LRS), len(RATIOS), 2) for queries, text in _TABLE.items()}


class Row(NamedTuple):
    """A run of Figure 5's setting: how it was trained, and its numbers after 100 iterations."""

    name: str
    optimizer: str
    momentum: float
    ratio: float
    numbers: tuple[float, float, float, float]


# Figure 5's setting (two classes with a query each, rate 1 of Z, zero start), means over 5 seeds of an independent run in NumPy:
# the paper shows these runs as pictures.
QUANTITIES = ("entropy, own tokens", "entropy, all tokens", "mass of common tokens", "attention on token 19")
START = (2.151, 2.899, 0.645, 0.0645)
FIG5 = (
    Row("SGD, momentum 0.9, 1/1", "sgd", 0.9, 1.0, (1.94, 2.75, 0.38, 0.185)),
    Row("SGD, momentum 0.9, 10/1", "sgd", 0.9, 10.0, (2.08, 2.89, 0.55, 0.100)),
    Row("SGD, no momentum, 1/1", "sgd", 0.0, 1.0, (2.06, 2.88, 0.51, 0.113)),
    Row("Adam", "adam", 0.9, 1.0, (2.18, 2.18, 0.000, 0.162)),
)

# Theorem 2 with two unequal common tokens, by an independent integration (M = 6, unit rates, rho = 1): the laws of two classes on
# the two common tokens and on the distinct token of either class, and the first class's logits at t = 20 to four digits.
UNEQUAL_LAWS = ((0.30, 0.10, 0.60, 0.0), (0.02, 0.38, 0.0, 0.60))
UNEQUAL_LOGITS = (0.0045, -0.1448, 0.1402, 0.0)

# Theorem 3 in the network's gradient flow, by an independent integration: r / (r_0 e^{2z}) - 1 where z = 0.2, by eta_Y/eta_Z, for
# the tokens of largest and smallest P of two classes with two common tokens of weight 1 and distinct ones of .4, .7, 1.
RESIDUALS = {0.1: -0.126, 1.0: -0.042, 10.0: -0.019}

# The growth of B_n(t) in the talks' figure (M = 10000, one class, C_0 = 1, equal learning rates): the law's values to four digits,
# by learning rate and time.
B_LINES = {
    0.5: {5: 0.6505, 10: 0.9815, 20: 1.2790, 30: 1.3583, 50: 1.4078},
    1.0: {5: 0.9815, 10: 1.2790, 20: 1.3895, 30: 1.4205, 50: 1.4497},
    2.0: {5: 1.2790, 10: 1.3895, 20: 1.4378, 30: 1.4587, 50: 1.4815},
    4.0: {5: 1.3895, 10: 1.4378, 20: 1.4719, 30: 1.4889, 50: 1.5086},
    8.0: {5: 1.4378, 10: 1.4719, 20: 1.5002, 30: 1.5153, 50: 1.5332},
}
