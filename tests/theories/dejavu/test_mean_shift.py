"""The verdict of this topic, with all controls and rivals, on a few runs.

One step of attention on clouds, once more in NumPy.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu import mean_shift
from jaxdyn.theories.dejavu.mean_shift import Clouds, trial


def test_a_step_by_hand():
    ds = jd.sweep(trial, jd.grid(Clouds, beta=1.5, tokens=40), 1)
    x, after = (ds[name].values.reshape(80, 2) for name in ("before", "after"))
    e = np.exp(1.5 * x @ x.T)
    np.testing.assert_allclose(after, e / e.sum(1, keepdims=True) @ x, rtol=1e-10, atol=1e-12)
    a, b = x[:40] - x[:40].mean(0), after[:40] - after[:40].mean(0)
    np.testing.assert_allclose(np.ravel(ds.measured_deviation), (a * b).sum() / (a**2).sum(), rtol=1e-10)


@pytest.mark.parametrize("wrong", [{"beta": -1.0}, {"sigma": 0.0}, {"tokens": 7}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Clouds(**wrong)


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(mean_shift.CLAIMS), seeds=32)] == ["upheld"]
