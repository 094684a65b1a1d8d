"""Equations of finite step sizes against autodiff and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.cal.dynamics import steps
from jaxdyn.theories.cal.model import Linear, linear_loss, regression_loss
from tests.theories.cal.helpers import solve

pytestmark = pytest.mark.usefixtures("x64")


def random_linear(seed, hidden=4, inputs=3, outputs=2):
    rng = np.random.default_rng(seed)
    shapes = (hidden, inputs), (outputs, hidden), (outputs, inputs)
    w1, w2, m = (jnp.asarray(rng.normal(size=s)) for s in shapes)
    return Linear(w1, w2), m


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_field_is_the_negative_gradient_of_the_network(decay):
    p, m = random_linear(0)
    fields = jax.jit(lambda q: (steps.linear_field(m, decay)(q), jax.grad(linear_loss)(q, m, decay)))
    for ours, g in zip(*fields(p), strict=True):
        np.testing.assert_allclose(ours, -g, rtol=1e-12, atol=1e-13)


def test_modified_field_is_the_negative_gradient_of_the_modified_loss():
    p, m = random_linear(1)

    def modified(q):
        return linear_loss(q, m) + 0.25 * 0.07 * sum(jnp.sum(g**2) for g in jax.grad(linear_loss)(q, m))

    fields = jax.jit(lambda q: (steps.modified_field(steps.linear_field(m), 0.07)(q), jax.grad(modified)(q)))
    for ours, g in zip(*fields(p), strict=True):
        np.testing.assert_allclose(ours, -g, rtol=1e-11, atol=1e-12)


def test_shuffled_field_is_the_negative_gradient_of_its_loss():
    p, _ = random_linear(2)
    rng = np.random.default_rng(3)
    x, y, eta = jnp.asarray(rng.normal(size=(4, 2, 3))), jnp.asarray(rng.normal(size=(4, 2, 2))), 0.05

    def modified(q):
        losses = [regression_loss(q, batch) for batch in zip(x, y, strict=True)]
        slopes = [sum(jnp.sum(g**2) for g in jax.grad(regression_loss)(q, batch)) for batch in zip(x, y, strict=True)]
        return sum(losses) / 4 + eta / 16 * sum(slopes)

    xx, yx = jnp.einsum("mbi,mbj->mij", x, x) / 2, jnp.einsum("mbo,mbi->moi", y, x) / 2
    fields = jax.jit(lambda q: (steps.shuffled_field(xx, yx, eta)(q), jax.grad(modified)(q)))
    for ours, g in zip(*fields(p), strict=True):
        np.testing.assert_allclose(ours, -g, rtol=1e-11, atol=1e-12)


def test_balance_rate_is_exact_for_one_step():
    p, m = random_linear(4)
    eta, g = 0.3, jax.grad(linear_loss)(p, m)
    after = Linear(p.w1 - eta * g.w1, p.w2 - eta * g.w2)
    change = steps.balance(after) - steps.balance(p)
    np.testing.assert_allclose(change, eta**2 * steps.balance_rate(p, m), atol=1e-12)
    assert np.abs(change).max() > 0.1


def test_leading_error_of_the_scalar_problem():
    """Flow and leading error of (uv - 1)^2 / 2 from (1.5, 0.2) at t = 1, from an explicit Hessian in NumPy."""

    def field(y):
        u, v, *e = y
        f = -(u * v - 1) * np.array([v, u])
        h = np.array([[v * v, 2 * u * v - 1], [2 * u * v - 1, u * u]])
        return np.concatenate([f, -h @ e + 0.5 * h @ f])

    y = solve(field, [1.5, 0.2, 0, 0], np.array([1.0]))[0]
    np.testing.assert_allclose(y, [1.6011336, 0.5946670, -0.0251584, 0.1164147], atol=1e-7)
    state = Linear(jnp.full((1, 1), 0.2), jnp.full((1, 1), 1.5))
    joint = steps.Flows(state, Linear(jnp.full((1, 1), 0.3), jnp.full((1, 1), -0.1)), state, jnp.zeros((1, 1)))
    out = steps.flows_field(0.0, joint, steps.FlowsArgs(jnp.ones((1, 1)), 0.1, 0.0))
    expected = field(np.array([1.5, 0.2, -0.1, 0.3]))
    np.testing.assert_allclose([out.flow.w2, out.flow.w1, out.lead.w2, out.lead.w1], expected.reshape(4, 1, 1), rtol=1e-12)
