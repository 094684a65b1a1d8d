"""Matched correlations, their null, and weights read off, on embeddings that are made of known modes."""

import itertools

import numpy as np

from jaxdyn.theories.sln import alignment


def modes(rng, edges, count):
    return np.linalg.qr(np.concatenate([np.ones((edges, 1)), rng.normal(size=(edges, count))], 1))[0][:, 1:]


def test_an_embedding_of_modes_matches_them():
    rng = np.random.default_rng(0)
    v = modes(rng, 12, 5)
    h = v * [4.0, 1.0, 3.0, 0.2, 0.1] @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 7
    components = alignment.principal(h, 3)
    np.testing.assert_allclose(components.T @ components, np.eye(3), atol=1e-12)
    assert alignment.matched(components, v) > 1 - 1e-12
    below = alignment.null(components, v, 200, 1)
    assert below.shape == (200,) and below.max() < 0.99
    np.testing.assert_allclose(alignment.weights(h, v), [16, 1, 9, 0.04, 0.01], atol=1e-8)


def test_matching_is_the_best_of_all():
    rng = np.random.default_rng(2)
    p, v = modes(rng, 9, 3), modes(rng, 9, 4)
    table = abs(p.T @ v)
    best = max(np.mean([table[a, b] for a, b in enumerate(order)]) for order in itertools.permutations(range(4), 3))
    assert abs(alignment.matched(p, v) - best) < 1e-14
