"""The judges of paths on the mixture of Theorem 3, on made-up data."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.claims import thm3_path

from ..helpers import distorted, panels, upheld

CLAIMS = {c.id: c for c in thm3_path.CLAIMS}


@pytest.fixture(scope="module")
def path_runs():
    """Paths as the judge meets them: first-order step error, Monte Carlo error of the stated size, one activation."""
    rng = np.random.default_rng(0)
    eta, runs, path = np.array([0.04, 0.02, 0.01]), ("activation", "eta", "seed"), ("time", "coordinate")
    predicted, drift, noise = rng.normal(size=(3, 1, 1, 6, 5, 4))
    step = eta[None, :, None, None, None]
    measured = predicted + 3e-3 * noise / 32**0.5 + 0.2 * step * drift + 0.1 * step**2
    shape = measured.shape
    each = 3e-3 * rng.normal(size=(1, 1, 6, 32, 4))
    each = each - each.mean(-2, keepdims=True)  # replicates around the mean
    return xr.Dataset(
        {
            "predicted_path": ((*runs, *path), np.broadcast_to(predicted, shape)),
            "measured_path": ((*runs, *path), measured),
            "end": ((*runs, "replicate", "coordinate"), measured[..., -1, None, :] + each),
            "without_xi": ((*runs, *path), np.broadcast_to(predicted + 0.1 * drift, shape)),
            "measured_in_span": (runs, np.full(shape[:3], 0.9)),
            "measured_pace": (runs, np.full(shape[:3], 0.5)),
            "start_cosine": (runs, np.full(shape[:3], 0.5)),
            "measured_cosine": (runs, np.full(shape[:3], 0.8)),
        },
        {"activation": ["tanh"], "eta": eta},
    )


def test_path_judge(path_runs):
    assert upheld(thm3_path.judge_path, path_runs)
    assert not upheld(thm3_path.judge_path, distorted(path_runs, "path", 1.1))
    assert not upheld(thm3_path.judge_path, distorted(path_runs, "path", 0.9))
    for rival in CLAIMS["joma.thm3_path"].rivals.values():
        assert not upheld(thm3_path.judge_path, rival(path_runs))
    second_order = path_runs.assign(measured_path=path_runs.predicted_path + path_runs.eta**2 * path_runs.without_xi)
    assert not upheld(thm3_path.judge_path, second_order)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        thm3_path.judge_path(path_runs.isel(eta=slice(2)))
    with pytest.raises(jd.Inconclusive, match="half"):
        thm3_path.judge_path(path_runs.assign_coords(eta=[0.04, 0.02, 0.012]))


def test_hotelling_refuses_a_true_mean_at_its_level():
    """Over correlated coordinates: F is beyond its 1% quantile in 1% of the runs."""
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(4, 4))
    miss = xr.DataArray(rng.normal(size=(4000, 12, 4)) @ mix, dims=("seed", "replicate", "coordinate"))
    test, _ = thm3_path.hotelling(miss)
    share = float((test > scipy.stats.f.isf(0.01, 4, 8)).mean())
    assert abs(share - 0.01) < 4 * np.sqrt(0.01 * 0.99 / 4000)


def test_figures_draw(path_runs):
    assert panels(CLAIMS["joma.thm3_path"], path_runs)
    assert panels(CLAIMS["joma.critical_points"], path_runs.isel(eta=[0]))
