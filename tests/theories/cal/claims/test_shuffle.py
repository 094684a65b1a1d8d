"""Judge of the mean of SGD over shuffled epochs."""

import xarray as xr

from jaxdyn.theories.cal.claims import shuffle
from tests.theories.cal.helpers import distorted, passed


def test_shuffle_judge_weighs_the_noise_of_the_mean():
    eta = xr.DataArray([0.08, 0.04, 0.02], dims="eta", coords={"eta": [0.08, 0.04, 0.02]})
    entry = xr.DataArray([1.0, -0.5], dims="entry")
    ones = xr.ones_like(eta * entry)
    ds = xr.Dataset({"predicted_mean": ones, "measured_mean": ones + eta**2 * entry, "standard_error": 1e-9 * ones})
    assert passed(shuffle.judge(ds))
    assert not passed(shuffle.judge(distorted(ds, "mean", 1.001)))
    assert not passed(shuffle.judge(ds.assign(measured_mean=ones + 0.1 * eta * entry)))
