"""Short runs of networks trained by GaLore, and the judge of noise that is taken for signal on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.theories.galore import optimizer
from tests.theories.galore.helpers import passed


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_optimizers():
    ds = jd.sweep(optimizer.full_rank_trial, jd.grid(optimizer.FullRank, steps=6, depth=2, every=[2.0, 0.0]), 3)
    assert float(jd.relative_error(ds, "sgd", "place row col").max()) < 1e-9
    adam = jd.relative_error(ds, "adam", "place row col")
    assert float(adam.sel(every=0.0).max()) < 1e-6 and float(adam.sel(every=2.0).min()) > 0.01
    ds = jd.sweep(optimizer.sides_trial, jd.grid(optimizer.Sides, steps=10, depth=2, every=[1.0, 5.0]), 3)
    error = jd.relative_error(ds, "change", "place row col").max(("seed", "side"))
    assert error.sel(every=1.0) < 1e-9 < error.sel(every=5.0)
    ds = jd.sweep(optimizer.agreement_trial, jd.grid(optimizer.Agreement, periods=2, every=3), 3)
    assert float(jd.relative_error(ds, "change", "entry").max()) < 1e-5


@pytest.mark.slow
def test_rows_without_noise_take_no_direction():
    grid = jd.grid(optimizer.Noisy, rows=4, rank=2, noisy=[1.0, 2.0], lr=0.02, steps=400)
    left = jd.sweep(optimizer.noisy_trial, grid, 16).measured_left.isel(time=-1).mean("seed")
    assert float(left.sel(noisy=1.0)) < 0.01 and float(left.sel(noisy=2.0)) > 0.9


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        (optimizer.FullRank, {"rank": 7}),
        (optimizer.Agreement, {"side": "top"}),
        (optimizer.Noisy, {"finder": "guess"}),
        (optimizer.Noisy, {"rank": 3}),
        (optimizer.Noisy, {"noisy": 2.0}),
    ],
)
def test_wrong_settings_are_refused(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)


rng = np.random.default_rng(0)


def test_noise_is_judged_by_means_over_seeds():
    left = np.stack([np.full((200, 2), 0.97), np.full((200, 2), 0.24)], 1) * np.exp(0.01 * rng.normal(size=(200, 2, 1)))
    ds = xr.Dataset({name: (("seed", "finder", "time"), left) for name in ("measured_left", "predicted_left")},
                    coords={"finder": ["svd", "orthonormal"]})  # fmt: skip
    assert passed(optimizer.judge_noise(ds)) == [True] * 5
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 0.5)))[0] is False
    assert passed(optimizer.judge_noise(ds.assign(measured_left=ds.measured_left * 2)))[1:] == [False] * 4
    late = ds.measured_left.where([[True, True], [True, False]], 0.28 * np.ones(left.shape))  # a plateau that is too high
    assert passed(optimizer.judge_noise(ds.assign(measured_left=late))) == [True, True, True, False, False]
    little = ds.measured_left.where([[True, False], [True, True]], 0.975 * np.ones(left.shape))  # a fifth of what is learned
    assert passed(optimizer.judge_noise(ds.assign(measured_left=little))) == [True, False, True, True, True]
    with pytest.raises(Inconclusive):
        optimizer.judge_noise(ds.isel(finder=[0]))
