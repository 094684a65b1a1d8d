"""Score of Table 1 against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.joma.experiments.table1 import score


def plain_score(nodes, active, labels):
    """Sample by sample, with NumPy's own correlation."""
    h, a = nodes[labels], active[labels].astype(float)
    best = []
    for j in np.flatnonzero(a.any(0)):
        rho = [np.corrcoef(a[:, j], h[:, i])[0, 1] if np.ptp(h[:, i]) > 0 and np.ptp(a[:, j]) > 0 else 0 for i in range(h.shape[1])]
        best.append(max(rho))
    return np.mean(best)


def test_score_is_the_mean_best_correlation(x64):
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(6, 9))
    nodes[:, 4] = 0.7  # a constant node
    active = rng.random((6, 5)) < 0.4
    active[:, 0], active[:, 1] = False, True  # never, and always
    labels = rng.integers(0, 5, 60)  # the last sequence is never drawn
    counts = np.bincount(labels, minlength=6)
    expected = plain_score(nodes, active, labels)
    assert float(jax.jit(score.score)(jnp.asarray(nodes), jnp.asarray(active), jnp.asarray(counts))) == pytest.approx(
        expected, abs=1e-12
    )
    order = np.array([[0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 2, 4]])
    found = jax.jit(score.scores)(jnp.asarray(nodes), jnp.asarray(active), jnp.asarray(counts), jnp.asarray(order))
    np.testing.assert_allclose(found, [expected, plain_score(nodes, active[order[1]], labels)], atol=1e-12)


def test_a_node_that_is_constant_to_rounding_has_no_correlation():
    nodes = jnp.asarray([[0.3], [0.30000003], [0.3], [0.3]], jnp.float32)
    active = jnp.asarray([[False], [True], [False], [False]])
    assert float(jax.jit(score.score)(nodes, active, jnp.ones(4, jnp.int32))) == 0
