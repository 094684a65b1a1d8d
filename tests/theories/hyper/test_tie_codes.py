"""Codes that are written down, and their judge on made-up numbers."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from jaxdyn.errors import UsageError
from jaxdyn.theories.hyper import tie_codes
from jaxdyn.theories.hyper.tie_codes import Codes
from tests.theories.galore.helpers import passed


def test_blocks():
    x = jnp.array([[1.0, -1.0, 0.5, -0.2, 0.9]])
    np.testing.assert_allclose(tie_codes.read(x, jnp.float32(2), jnp.float32(2)), [[0, 0, 0.5**0.5, -(0.5**0.5), 0]], rtol=1e-6)
    np.testing.assert_allclose(tie_codes.exchanged(x, jnp.float32(2)), [[0.5, -0.2, 1.0, -1.0, 0.9]])


@pytest.mark.parametrize("wrong", [{"first": 11.0}, {"inputs": 19}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Codes(**wrong)


def test_ties():
    rng = np.random.default_rng(0)
    tie = 5.13 + 0.001 * rng.normal(size=(8, 4))
    ds = {"predicted_tie": (("seed", "part"), tie), "measured_tie": (("seed", "part"), tie)}
    for name, value, noise in (("mean", 5.13, 1e-4), ("other", 5.13, 1e-4), ("relevant", 0.998, 1e-4), ("irrelevant", 0.5, 0.01)):
        ds[f"measured_{name}"] = ("seed", value + noise * rng.normal(size=8))
    ds = xr.Dataset(ds | {"predicted_mean": ("seed", np.full(8, 5.13))})
    assert passed(tie_codes.judge(ds)) == [True] * 5
    assert passed(tie_codes.judge(tie_codes.EXCHANGED(ds))) == [True] * 3 + [False] * 2
    assert passed(tie_codes.judge(ds.assign(measured_other=ds.measured_other + 0.1)))[1] is False
