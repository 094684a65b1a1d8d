"""Numbers to compare with: of the paper, and of an independent integration of its equations where it has pictures only."""

from __future__ import annotations

# The ratio mu_A / mu_R by time, unit rates, by an independent integration for K of n vertices.
RATIO_SIZE = {"inside": 9.0, "vertices": 23}
RATIOS = {1e2: 1.03, 1e4: 1.86, 1e6: 2.19, 1e12: 2.57}

# arXiv:2509.23365, experiments with a GPT-2 of two layers: test accuracy, and the logit of frontier edges minus that of others, at
# which Coconut's training saturates (at about epoch 125); it keeps growing with the loss of Coconut-BFS.
ACCURACY = 0.962
SATURATED = (60.0, 125)
