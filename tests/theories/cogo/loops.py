"""The loss of a network from its definition, and random weights for it."""

import itertools

import numpy as np

from jaxdyn.data.abelian import Abelian

GROUPS = ("2", "5", "8", "2x3", "2x2", "3x3")


def weights(group: Abelian, q: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, group.order, q)) + 0.3  # zero modes are not zero


def by_loops(w: np.ndarray, group: Abelian, factor: float, pairs=None, activation=np.square) -> float:
    """The mean over pairs, from the definition: one pair, one class, one node at a time."""
    d, q = w.shape[1:]
    total, count = 0.0, 0
    for g1, g2 in itertools.product(range(d), repeat=2) if pairs is None else pairs:
        o = [sum(activation(w[0, g1, j] + w[1, g2, j]) * w[2, c, j] for j in range(q)) for c in range(d)]
        coordinates = tuple((a + b) % n for a, b, n in zip(group.elements[g1], group.elements[g2], group.sizes, strict=True))
        target = np.ravel_multi_index(coordinates, group.sizes)
        error = np.array([factor * x - (c == target) for c, x in enumerate(o)])
        total += np.sum((error - error.mean()) ** 2)
        count += 1
    return total / count
