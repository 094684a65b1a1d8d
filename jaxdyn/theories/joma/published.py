"""Published numbers of JoMA (arXiv:2310.00535): the paper's figures and tables, its released results, and the authors' talks."""

from __future__ import annotations

# Figure 3, gaussian data: the stable rank of V at the end is at most this
FIG3_STABLE_RANK = 1.2

# Figure 4: the critical point, and what the recursion behind the figure gives
FIG4_MU = (1.265432, 1.396091, 1.922268, 2.366884, 2.470280, 2.488770, 2.896919, 2.902236, 3.304665, 3.689334)
FIG4 = {"entropy at the minimum": 0.9416, "step of the minimum": 669.0, "entropy at step 4999": 1.5493}

# Table 1. (C, k, (N0, N1)): mean and standard deviation over 5 runs at s = 0, then at s = 1
TABLE1 = {
    (20, 2, (10, 20)): ((0.99, 0.01), (0.81, 0.05)),
    (20, 2, (20, 30)): ((0.97, 0.02), (0.80, 0.05)),
    (20, 3, (10, 20)): ((1.00, 0.00), (0.69, 0.05)),
    (20, 3, (20, 30)): ((0.96, 0.02), (0.68, 0.04)),
    (30, 2, (10, 20)): ((0.99, 0.01), (0.73, 0.08)),
    (30, 2, (20, 30)): ((0.94, 0.04), (0.74, 0.03)),
    (30, 3, (10, 20)): ((0.99, 0.01), (0.72, 0.04)),
    (30, 3, (20, 30)): ((0.95, 0.03), (0.66, 0.02)),
    (50, 2, (10, 20)): ((0.99, 0.01), (0.58, 0.02)),
    (50, 2, (20, 30)): ((0.95, 0.03), (0.55, 0.01)),
    (50, 3, (10, 20)): ((0.99, 0.01), (0.64, 0.02)),
    (50, 3, (20, 30)): ((0.95, 0.03), (0.61, 0.04)),
}
TABLE1_SIZES = {"width": 1024, "samples": 20, "every": 500.0}  # 10 000 steps


def _layers(*curves: tuple[float | None, float, float]) -> dict[int, dict[str, float | None]]:
    """Entropy at the start, at its lowest and at the end, nats, for each layer from the bottom."""
    return {i: dict(zip(("start", "min", "end"), curve, strict=True)) for i, curve in enumerate(curves)}


# WikiText-2, means of three seeds. (layers, rate): best validation loss, nats per word
BEST_LOSS = {
    (1, 1e-4): 5.357,
    (2, 1e-4): 5.255,
    (3, 1e-4): 5.215,
    (4, 1e-4): 5.187,
    (5, 1e-4): 5.169,
    (8, 1e-4): 5.121,
    (10, 1e-4): 5.110,
    (5, 1e-6): 6.410,
    (5, 5e-6): 5.885,
    (5, 1e-5): 5.671,  # one seed only
    (5, 5e-5): 5.229,
    (5, 1e-3): 5.305,
    (5, 1e-2): 6.761,
}
ENTROPY = {
    (1, 1e-4): _layers((2.51, 1.55, 2.21)),
    (2, 1e-4): _layers((2.51, 1.34, 1.83), (2.55, 1.53, 2.17)),
    (3, 1e-4): _layers((None, 1.27, 1.56), (None, 1.25, 1.89), (None, 1.92, 2.32)),
    (5, 1e-4): _layers((None, 1.29, 1.43), (None, 1.16, 1.50), (None, 1.25, 1.96), (None, 1.81, 2.07), (None, 2.16, 2.43)),
}
