"""Short training on digits."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data import digits
from jaxdyn.errors import UsageError
from jaxdyn.theories.memo.training import Memory, data, trial

SMALL = {"images": 40, "hidden": 32, "active": 32.0, "records": 4}


@pytest.mark.slow
def test_true_and_random_labels_are_fitted():
    ds = jd.sweep(trial, jd.grid(Memory, condition=["true", "random labels"], every=60.0, **SMALL), 2)
    assert (ds.measured_right == 1).all() and (ds.measured_first <= 240).all()
    test = ds.measured_test.mean("seed")
    assert float(test.sel(condition="true")) > 0.5 > 0.25 > float(test.sel(condition="random labels"))
    assert (ds.weights == 64 * 32 + 32 + 32 * 10 + 10).all()


def test_clashing_twins_cannot_be_fitted():
    (x, y), (x_test, y_test) = jax.device_get(jax.jit(lambda key: data(Memory(clashing=1.0, images=40), key))(jax.random.key(0)))
    np.testing.assert_array_equal(x[1::2], x[::2])
    assert (y[1::2] == (y[::2] + 1) % 10).all()
    assert x_test.shape == (1757, digits.PIXELS) and y_test.shape == (1757,)
    ds = jd.sweep(trial, jd.grid(Memory, clashing=[0.0, 1.0], every=20.0, **SMALL), 1)
    assert float(ds.measured_right.sel(clashing=1.0).max()) <= 0.5 < float(ds.measured_right.sel(clashing=0.0).min())
    assert (ds.measured_first.sel(clashing=1.0) == 100).all()  # one record after the last


@pytest.mark.parametrize("wrong", [{"active": 129.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Memory(**wrong)
