"""The judge of written codes, on made-up numbers."""

import numpy as np
import xarray as xr

from jaxdyn.theories.hyper.claims import codes
from tests.theories.galore.helpers import passed


def test_ties():
    rng = np.random.default_rng(0)
    tie = 5.13 + 0.001 * rng.normal(size=(8, 4))
    ds = {"predicted_tie": (("seed", "part"), tie), "measured_tie": (("seed", "part"), tie)}
    for name, value, noise in (("mean", 5.13, 1e-4), ("other", 5.13, 1e-4), ("relevant", 0.998, 1e-4), ("irrelevant", 0.5, 0.01)):
        ds[f"measured_{name}"] = ("seed", value + noise * rng.normal(size=8))
    ds = xr.Dataset(ds | {"predicted_mean": ("seed", np.full(8, 5.13))})
    assert passed(codes.judge(ds)) == [True] * 5
    assert passed(codes.judge(codes.exchanged(ds))) == [True] * 3 + [False] * 2
    assert passed(codes.judge(ds.assign(measured_other=ds.measured_other + 0.1)))[1] is False
