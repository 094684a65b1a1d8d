"""The judge of the noise that is taken for signal, on made-up runs."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.errors import Inconclusive
from jaxdyn.theories.galore.claims import optimizer
from tests.theories.galore.helpers import passed

rng = np.random.default_rng(0)


def test_noise_is_judged_by_means_over_seeds():
    left = np.stack([np.full((200, 2), 0.97), np.full((200, 2), 0.24)], 1) * np.exp(0.01 * rng.normal(size=(200, 2, 1)))
    ds = xr.Dataset({name: (("seed", "finder", "time"), left) for name in ("measured_left", "predicted_left")},
                    coords={"finder": ["svd", "orthonormal"]})  # fmt: skip
    assert passed(optimizer.judge_noise(ds)) == [True, True, True, True]
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 0.5)))[0] is False
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 2)))[1:] == [False, False, False]
    late = ds.measured_left.where([[True, True], [True, False]], 0.28 * np.ones(left.shape))  # a plateau that is too high
    assert passed(optimizer.judge_noise(ds.assign(measured_left=late))) == [True, True, True, False]
    little = ds.measured_left.where([[True, False], [True, True]], 0.975 * np.ones(left.shape))  # a fifth of what is learned
    assert passed(optimizer.judge_noise(ds.assign(measured_left=little))) == [True, False, True, True]
    with pytest.raises(Inconclusive):
        optimizer.judge_noise(ds.isel(finder=[0]))
