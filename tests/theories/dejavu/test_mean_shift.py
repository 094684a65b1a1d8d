"""One step of attention on clouds, once more in NumPy."""

import jax
import numpy as np

from jaxdyn.theories.dejavu.mean_shift import DRAWN, Clouds, trial


def test_a_step_by_hand(x64):
    s, key = Clouds(beta=1.5, tokens=40), jax.random.key(0)
    run = jax.jit(trial)(s, key)
    tokens = {name: run.recorded[name].value for name in ("before", "after")}
    x = s.sigma * np.asarray(jax.random.normal(key, (80, 2), "float64"))
    x[:, 0] += s.distance * np.repeat([1, -1], 40)
    e = np.exp(1.5 * x @ x.T)
    after = e / e.sum(1, keepdims=True) @ x
    np.testing.assert_allclose(tokens["before"], x[::DRAWN], rtol=1e-14)
    np.testing.assert_allclose(tokens["after"], after[::DRAWN], rtol=1e-10, atol=1e-12)
    a, b = x[:40] - x[:40].mean(0), after[:40] - after[:40].mean(0)
    np.testing.assert_allclose(run.measured["deviation"].value, (a * b).sum() / (a**2).sum(), rtol=1e-10)
    np.testing.assert_allclose(run.measured["mean"].value, after[:40, 0].mean() / x[:40, 0].mean(), rtol=1e-10)
