"""Training with finite steps against loops in NumPy, and the balance that one step moves."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cal.trials import steps

S = steps.Steps(eta=0.07, inputs=3, hidden=4, outputs=2, samples=2)
TRAIN = jax.jit(steps._train)


def moved(s, weights, m, count):
    """Weights after so many steps of the setting's optimizer, its textbook form."""
    velocity, square = [[np.zeros_like(w) for w in weights] for _ in range(2)]
    for n in range(1, count + 1):
        w1, w2 = weights
        gap = w2 @ w1 - m
        slopes = [w2.T @ gap + s.decay * w1, gap @ w1.T + s.decay * w2]
        if s.optimizer == "adam":
            velocity = [0.9 * v + 0.1 * g for v, g in zip(velocity, slopes, strict=True)]
            square = [0.999 * q + 0.001 * g**2 for q, g in zip(square, slopes, strict=True)]
            ways = [v / (1 - 0.9**n) / (np.sqrt(q / (1 - 0.999**n)) + 1e-8) for v, q in zip(velocity, square, strict=True)]
        else:
            beta = s.beta if s.optimizer == "heavy_ball" else 0.0
            velocity = ways = [beta * v + g for v, g in zip(velocity, slopes, strict=True)]
        weights = [w - s.eta * d for w, d in zip(weights, ways, strict=True)]
    return weights


@pytest.mark.parametrize(("optimizer", "decay"), [("gd", 0.0), ("gd", 0.3), ("heavy_ball", 0.0), ("adam", 0.0)])
def test_training_is_the_textbooks(x64, optimizer, decay):
    s = dataclasses.replace(S, optimizer=optimizer, decay=decay)
    start, m = steps.problem(s, jax.random.key(1))
    weights, drift = TRAIN(s, start, m, jnp.int32(3))
    for record in range(3):
        for found, want in zip(weights, moved(s, [np.asarray(w) for w in start], np.asarray(m), 3 * record), strict=True):
            np.testing.assert_allclose(found[record], want, rtol=1e-9, atol=1e-12)
    if optimizer == "gd" and decay == 0:
        w1, w2 = (np.asarray(w) for w in weights)
        balance = w1 @ w1.swapaxes(1, 2) - w2.swapaxes(1, 2) @ w2
        np.testing.assert_allclose(drift, balance - balance[0], atol=1e-12)
        assert np.abs(drift[-1]).max() > 1e-3


def test_the_scalar_problem_sits_in_the_first_entries(x64):
    (w1, w2), m = steps.problem(dataclasses.replace(S, start="uv"), jax.random.key(0))
    assert (w1[0, 0], w2[0, 0], m[0, 0]) == (1.5, 0.2, 1.0)
    assert [int(jnp.count_nonzero(x)) for x in (w1, w2, m)] == [1, 1, 1]


def test_starts_depend_on_the_key_alone(x64):
    """Runs that differ in step size and optimizer are compared from the same start."""
    one, other = (steps.problem(dataclasses.replace(S, **f), jax.random.key(3)) for f in ({}, {"eta": 0.01, "optimizer": "adam"}))
    jax.tree.map(np.testing.assert_array_equal, one, other)
    again = steps.problem(S, jax.random.key(4))
    assert not np.array_equal(again[1], one[1])


@pytest.mark.parametrize("fields", [{"eta": 0.0}, {"beta": 1.0}, {"hidden": 0}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError, match=next(iter(fields))):
        steps.Steps(**fields)
