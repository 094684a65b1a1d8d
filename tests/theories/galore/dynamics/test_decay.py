"""Modes, descent and both bounds; the counterexample to the printed bound with its published numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import metrics
from jaxdyn.theories.galore.dynamics import decay

MODES, LOWEST, LARGEST_STEP = map(jax.jit, (decay.modes, decay.lowest, decay.largest_step))
BOUNDS, GRADIENTS, STABLE_RANK = map(jax.jit, (decay.bounds, decay.gradients, metrics.stable_rank))


def wishart(rng, n, d):
    x = rng.normal(size=(n, d, 2 * d))
    return x @ x.transpose(0, 2, 1)


def test_modes_are_those_of_the_kronecker_product(x64):
    rng = np.random.default_rng(0)
    b, c, g = wishart(rng, 3, 4), wishart(rng, 3, 5), rng.normal(size=(4, 5))
    modes = MODES(b, c)
    for value, matrix in zip(modes.values[::7], modes.matrices[::7], strict=True):
        image = np.mean([b[i] @ matrix @ c[i] for i in range(3)], 0)
        np.testing.assert_allclose(image, value * matrix, atol=1e-9)
    np.testing.assert_allclose(np.einsum("kmn,lmn->kl", modes.matrices, modes.matrices), np.eye(20), atol=1e-12)
    expected = np.linalg.eigvalsh(np.mean([np.kron(c[i], b[i]) for i in range(3)], 0))
    np.testing.assert_allclose(modes.values, expected, rtol=1e-9)
    eta, now = 0.3 / modes.values[-1], g
    for _ in range(4):
        now = now - eta * np.mean([b[i] @ now @ c[i] for i in range(3)], 0)
    np.testing.assert_allclose(GRADIENTS(modes, g, eta, jnp.array([0, 4]))[1], now, atol=1e-12)


def counterexample(sign=1.0):
    same = np.array([[1, 0.9], [0.9, 2]])
    b = np.stack([same, same * np.array([[1, -1], [-1, 1]])])
    return b, np.diag([1, -0.25275]) + sign * 0.3 * np.diag([-0.25275, -1])


def test_the_counterexample_breaks_the_printed_bound_alone(x64):
    b, g = counterexample()
    modes = MODES(b, b)
    np.testing.assert_allclose(modes.values, [0.79527, 1.19, 2.81, 4.20473], atol=5e-6)
    kept, first, second = LOWEST(modes, g)
    np.testing.assert_allclose(kept / kept[0, 0], np.diag([1, -0.25275]), atol=1e-5)
    eta = 0.2
    assert eta < LARGEST_STEP(modes, second)[0]
    printed, corrected = BOUNDS(modes, g, eta, jnp.arange(6))
    path = GRADIENTS(modes, g, eta, jnp.arange(6))
    ranks = STABLE_RANK(path)
    np.testing.assert_allclose([ranks[0], printed[0]], [1.3577, 1.1596], atol=1e-4)
    assert np.all(ranks <= corrected + 1e-12)
    excess = np.asarray(ranks - STABLE_RANK(kept))
    np.testing.assert_allclose(excess[5] / excess[4], 0.1891, atol=1e-3)
    np.testing.assert_allclose(decay.ratio(eta, first, modes.values[-1]), 0.1891, atol=1e-4)
    _, flipped = counterexample(-1.0)
    assert np.all(STABLE_RANK(GRADIENTS(modes, flipped, eta, jnp.arange(6)))
                  <= BOUNDS(modes, flipped, eta, jnp.arange(6))[0] + 1e-12)  # fmt: skip


def test_beyond_the_step_size_another_eigenvalue_decays_last(x64):
    values = np.ones((4, 4)) + 2 * np.eye(4)
    values[0, 3] = 0.05
    b = 4 * np.einsum("ia,ib->iab", np.eye(4), np.eye(4))
    c = np.stack([np.diag(row) for row in values])
    modes, g = MODES(b, c), np.random.default_rng(0).normal(size=(4, 4))
    limit, stable = LARGEST_STEP(modes, LOWEST(modes, g)[2])
    np.testing.assert_allclose([limit, stable], [0.5, 2 / 3])
    steps = jnp.arange(0, 200)
    for eta, broken in ((0.3, False), (0.6, True)):
        ranks = STABLE_RANK(GRADIENTS(modes, g, eta, steps))
        assert (float(jnp.max(ranks - BOUNDS(modes, g, eta, steps)[1])) > 0.1) == broken
