"""One step of attention on clouds, once more in NumPy."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.dejavu.mean_shift import Clouds, trial


def test_a_step_by_hand():
    ds = jd.sweep(trial, jd.grid(Clouds, beta=1.5, tokens=40), 1)
    x, after = (ds[name].values.reshape(80, 2) for name in ("before", "after"))
    e = np.exp(1.5 * x @ x.T)
    np.testing.assert_allclose(after, e / e.sum(1, keepdims=True) @ x, rtol=1e-10, atol=1e-12)
    a, b = x[:40] - x[:40].mean(0), after[:40] - after[:40].mean(0)
    np.testing.assert_allclose(np.ravel(ds.measured_deviation), (a * b).sum() / (a**2).sum(), rtol=1e-10)
