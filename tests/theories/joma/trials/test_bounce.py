"""Runs of the entropy bounce against the published recursion in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.dynamics.thm4 import entropy_of_logits
from jaxdyn.theories.joma.trials import bounce

from ..helpers import inside


def published_recursion(steps, eta=0.02, temperature=3.0):
    """The recursion behind Fig. 4, in NumPy: entropy at every step."""
    mu, v, h = np.array(published.FIG4_MU), np.full(10, 0.05), []
    for _ in range(steps):
        p = scipy.special.softmax(v**2 / temperature)
        h.append(-np.sum(p * np.log(p)))
        v = v + eta * (mu - v) * p
    return np.array(h)


@pytest.mark.slow
def test_published_numbers(bounce_runs):
    h = published_recursion(5001)
    low, at, last = published.FIG4.values()
    assert abs(h.min() - low) < 5e-5 and h.argmin() == at and abs(h[4999] - last) < 5e-5
    ours = bounce_runs.sel(draw="fig4", logits="law", drive="critical", eta=0.02).isel(seed=0)
    np.testing.assert_allclose(ours.measured_entropy, h[:: bounce.PREDICTED], atol=1e-11)
    assert float(ours.lowest_at) == at


def test_equal_critical_values_do_not_bounce(x64):
    s = inside(bounce.Bounce(spread=0.0))

    @jax.jit
    def after_one_step(key):
        mu = bounce.place(s, key)
        v = jnp.full_like(mu, 0.05)
        return bounce.step((v, v * v / 3), mu, s.eta, s)

    _, z = after_one_step(jax.random.key(3))
    np.testing.assert_allclose(entropy_of_logits(z), np.log(10), atol=1e-14)


def test_mu_may_be_given(x64):
    """With the figure's own numbers it is the run of the figure; the settings refuse what is no critical point."""
    given = inside(bounce.Bounce(mu=published.FIG4_MU))
    np.testing.assert_array_equal(bounce.place(given, jax.random.key(0)), np.array(published.FIG4_MU))
    np.testing.assert_array_equal(
        bounce.place(inside(bounce.Bounce(draw="fig4")), jax.random.key(0)), bounce.place(given, jax.random.key(1))
    )
    grid = jd.grid(bounce.Bounce).replace(mu="1.5:2.5", tokens=2)
    assert grid.base.mu == (1.5, 2.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"eta": 0.5}, "whole multiple"),
        ({"temperature": 0.0}, "temperature"),
        ({"mu": (1.0, 2.0)}, "one number per token"),
        ({"mu": (0.01, 2.0), "tokens": 2}, "above start"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        bounce.Bounce(**fields)
