"""Strengths of memorised pairs against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics import memory as theory

P = (0.1, 0.15, 0.2, 0.25, 0.3)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", (0.298, 0.447, 0.596, 0.745, 0.894)),
        ("silu", (0.216, 0.361, 0.539, 0.749, 0.986)),
        ("tanh", (0.400, 0.534, 0.638, 0.722, 0.792)),
    ],
)
def test_strengths_of_memorised_pairs(x64, kind, expected):
    s = theory.spread(jnp.asarray(P), kind)
    np.testing.assert_allclose(s, expected, atol=6e-4)
    np.testing.assert_allclose(jnp.sum(s**2), 2, rtol=1e-12)
    act = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "tanh": np.tanh}[kind]
    found = scipy.optimize.minimize(
        lambda x: -np.dot(P, act(x)), np.full(5, 0.6), constraints={"type": "eq", "fun": lambda x: x @ x - 2}, tol=1e-12
    )
    np.testing.assert_allclose(s, found.x, atol=1e-4)


def test_an_ascent_of_one_target_shares_between_both_weights(x64):
    group = parse("S3")
    p = jnp.asarray([0.1, 0.1, 0.2, 0.1, 0.3, 0.2])
    w = theory.ascend(jnp.abs(jax.random.normal(jax.random.key(0), (12, 2), jnp.float64)), p, group, "tanh", target=4)
    for g in range(6):
        second = next(b for b in range(6) if group.table[g, b] == 4)
        np.testing.assert_allclose(w[g], w[6 + second], atol=1e-9)
    np.testing.assert_allclose(theory.strengths(w, group, 4)[:, 0], theory.spread(p, "tanh"), atol=1e-9)
