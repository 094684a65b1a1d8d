"""Plateaus and the merged form of linear attention against gradients of the loss, limits, and numbers checked independently."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.icl.dynamics import merged, plateaus

LAM = np.diag([2.0, 1.0, 0.5, 0.25])


def loss(y, lam, n):
    """The loss as the paper has it."""
    g = merged.gamma(lam, n)
    cross = jnp.trace(lam @ lam @ y.block.T)
    return 0.5 * (y.u**2 * jnp.trace(g @ lam @ y.block @ lam @ y.block.T) - 2 * y.u * cross + jnp.trace(lam))


def test_field_is_a_gradient(x64):
    rng = np.random.default_rng(0)
    y = merged.Blocks(jnp.asarray(0.7), jnp.asarray(rng.normal(size=(4, 4))))
    gradient = jax.grad(loss)(y, jnp.asarray(LAM), 10.0)
    rates = merged.field(0.0, y, (jnp.asarray(LAM), 10.0))
    jax.tree.map(lambda r, g: np.testing.assert_allclose(r, -g, rtol=1e-10, atol=1e-12), rates, gradient)


def test_limit_and_test_errors(x64):
    lam = jnp.asarray(LAM)
    end = merged.limit(lam, 10, 0.0)
    np.testing.assert_allclose((end.u, merged.least_loss(lam, 10)), (1.42695, 0.576106), rtol=2e-6)  # checked independently
    np.testing.assert_allclose(loss(end, lam, 10), merged.least_loss(lam, 10), rtol=1e-12)
    p = end.u * end.block
    risks = [merged.risk(p, lam, m, jnp.eye(4), 0.0) for m in (5, 10, 40, 1000)]
    np.testing.assert_allclose(risks, (1.9008, 1.1522, 0.5908, 0.4111), atol=6e-5)
    for c in (-0.5, 2.0):
        other = merged.limit(lam, 10, c)
        np.testing.assert_allclose(other.u**2 - np.sum(np.square(other.block)), c, rtol=1e-9)
        np.testing.assert_allclose(other.u * other.block, p, rtol=1e-12, atol=1e-14)


def test_risk_by_sampling(x64):
    rng = np.random.default_rng(1)
    root, p, n = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)) / 3, 200_000
    half = rng.normal(size=(3, 3))
    lam, task = root @ root.T, half @ half.T
    x, w, q = rng.normal(size=(n, 6, 3)) @ root.T, rng.normal(size=(n, 3)) @ half.T, rng.normal(size=(n, 3)) @ root.T
    y = np.einsum("nid,nd->ni", x, w) + 0.7 * rng.normal(size=(n, 6))
    label = np.einsum("ni,nid,de,ne->n", y, x, p, q, optimize=True) / 6
    squares = np.square(label - np.sum(w * q, -1))
    exact = merged.risk(jnp.asarray(p), jnp.asarray(lam), 6, jnp.asarray(task), 0.49)
    assert abs(float(exact) - squares.mean()) < 4 * squares.std() / n**0.5


def test_logistic_path(x64):
    t = jnp.asarray([0.0, 2.5])
    first = 0.01**2 * 5**0.5
    q = merged.logistic(t, first, 5, 20)
    np.testing.assert_allclose(q, (first, 0.734026), rtol=2e-6)  # checked independently
    start = merged.Blocks(jnp.sqrt(5.0) * 0.01, 0.01 * jnp.eye(5))
    path = merged.solve(start, jnp.eye(5), 20.0, t)
    np.testing.assert_allclose(path.ys.u[1] * path.ys.block[1], q[1] * np.eye(5), atol=1e-9)


@pytest.mark.parametrize("c", [-0.05, 1.0])
def test_corner_is_the_end_of_the_flow(x64, c):
    lam = jnp.asarray(LAM)
    start = merged.Blocks(jnp.sqrt(0.09 + c), 0.15 * jnp.eye(4))
    path = merged.solve(start, lam, 10.0, jnp.asarray([0.0, 300.0]))
    np.testing.assert_allclose(path.ys.u[1], merged.corner(lam, 10.0, c), rtol=1e-8)


def test_levels(x64):
    lam = jnp.asarray([2.0, 1.0, 0.5])
    np.testing.assert_allclose(plateaus.levels(lam, 50), (1.75, 0.80213, 0.34342, 0.12790), atol=6e-6)
    np.testing.assert_allclose(plateaus.levels(lam, 50)[-1], merged.least_loss(jnp.diag(lam), 50), rtol=1e-12)


def test_strengths(x64):
    np.testing.assert_array_equal(plateaus.strengths(2), [[0, 0], [1, 0], [1, 1]])
