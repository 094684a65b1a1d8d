"""Descent on the mixture of Theorem 3 against NumPy."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma import mixture as net
from jaxdyn.theories.joma.trials import mixture_path as trial
from jaxdyn.theories.joma.trials.mixture import Mixture, sample

from ..helpers import inside


@jax.jit
def drawn(s):
    """A mixture of two components over six tokens, samples of it, and the start."""
    one = net.draw(jax.random.key(0), 6, 2, 1.0, 2.0)
    return one, *sample(jax.random.key(1), one, s, 20_000), net.start_weights(one)


def test_descent_is_plain_gradient_descent(x64):
    s = inside(trial.Path(activation="tanh", eta=0.1, horizon=1.6))
    one, x, g, w = drawn(inside(Mixture()))
    x, g = x[:, :10], g[:, :10]
    f = np.asarray(net.features(one, x))
    path = jax.jit(trial._descend)(s, one, f, g)
    for _ in range(16):
        slope = 1 - np.tanh(f @ w) ** 2
        w = w + 0.1 * np.einsum("c,cn,cnd->d", one.share / 10, np.asarray(g) * slope, f)
    np.testing.assert_allclose(path[-1], w, atol=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"horizon": 0.1}, "horizon"),
        ({"replicates": 1}, "replicates"),
        ({"horizon": 1.0, "eta": 0.05}, "whole multiple"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        trial.Path(**fields)
