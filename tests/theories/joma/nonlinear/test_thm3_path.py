"""Descent on the mixture of Theorem 3 against NumPy; the judges of its paths on made-up data."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.nonlinear import mixture as net
from jaxdyn.theories.joma.nonlinear import thm3_path as trial
from jaxdyn.theories.joma.nonlinear.mixture_point import Mixture, sample
from tests.theories.joma.helpers import distorted, inside, panels, upheld


@jax.jit
def sampled(s):
    """A mixture of two components over six tokens, samples of it, and the start."""
    one = net.sample_instance(jax.random.key(0), 6, 2, 1.0, 2.0)
    return one, *sample(jax.random.key(1), one, s, 20_000), net.start_weights(one)


def test_descent_is_plain_gradient_descent(x64):
    s = inside(trial.Path(activation="tanh", eta=0.1, horizon=1.6))
    one, x, g, w = sampled(inside(Mixture()))
    x, g = x[:, :10], g[:, :10]
    f = np.asarray(net.features(one, x))
    path = jax.jit(trial.descend)(s, one, f, g)
    for _ in range(16):
        slope = 1 - np.tanh(f @ w) ** 2
        w = w + 0.1 * np.einsum("c,cn,cnd->d", one.share / 10, np.asarray(g) * slope, f)
    np.testing.assert_allclose(path[-1], w, atol=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"horizon": 0.1}, "horizon"),
        ({"horizon": 1.0, "eta": 0.05}, "whole multiple"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        trial.Path(**fields)


CLAIMS = {c.id: c for c in trial.CLAIMS}


@pytest.fixture(scope="module")
def path_runs():
    """Paths as the judge meets them: first-order step error, Monte Carlo error of the stated size, one activation."""
    rng = np.random.default_rng(0)
    eta, runs, path = np.array([0.04, 0.02, 0.01]), ("activation", "eta", "seed"), ("time", "coordinate")
    predicted, drift = rng.normal(size=(2, 1, 1, 6, 5, 4))
    step = eta[None, :, None, None, None]
    each = 0.05 * rng.normal(size=(1, 1, 6, 32, 5, 4))  # Monte Carlo errors of the replicates, the same for all step sizes
    paths = (predicted + 0.2 * step * drift + 0.1 * step**2)[:, :, :, None] + each
    measured = paths.mean(3)
    shape = measured.shape
    return xr.Dataset(
        {
            "predicted_path": ((*runs, *path), np.broadcast_to(predicted, shape)),
            "measured_path": ((*runs, *path), measured),
            "paths": ((*runs, "replicate", *path), paths),
            "without_xi": ((*runs, *path), np.broadcast_to(predicted + 0.1 * drift, shape)),
            "measured_in_span": (runs, np.full(shape[:3], 0.9)),
            "measured_pace": (runs, np.full(shape[:3], 0.5)),
            "start_cosine": (runs, np.full(shape[:3], 0.5)),
            "measured_cosine": (runs, np.full(shape[:3], 0.8)),
        },
        {"activation": ["tanh"], "eta": eta},
    )


def test_path_judge(path_runs):
    assert upheld(trial.judge_path, path_runs)
    assert not upheld(trial.judge_path, distorted(path_runs, "path", 1.1))
    assert not upheld(trial.judge_path, distorted(path_runs, "path", 0.9))
    for rival in CLAIMS["joma.thm3_path"].rivals.values():
        assert not upheld(trial.judge_path, rival(path_runs))
    second_order = path_runs.assign(measured_path=path_runs.predicted_path + path_runs.eta**2 * path_runs.without_xi)
    assert not upheld(trial.judge_path, second_order)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        trial.judge_path(path_runs.isel(eta=slice(2)))
    with pytest.raises(jd.Inconclusive, match="half"):
        trial.judge_path(path_runs.assign_coords(eta=[0.04, 0.02, 0.012]))


def test_a_bend_away_from_the_law_is_found_whatever_its_length(path_runs):
    """At a right angle to the law's path, so that the length along it is unchanged."""
    law, bend = path_runs.predicted_path, path_runs.without_xi - path_runs.predicted_path
    across = bend - law * (bend * law).sum(["time", "coordinate"]) / (law**2).sum(["time", "coordinate"])
    off = path_runs.assign(paths=(path_runs.paths + across).transpose(*path_runs.paths.dims))
    assert [c.passed for c in trial.judge_path(off)] == [True, False, True]


def test_squared_distances_are_unbiased():
    """Against the double sum; and without a distance their mean is zero, though replicates scatter."""
    rng = np.random.default_rng(1)
    miss = xr.DataArray(rng.normal(size=(500, 8, 3, 2)), dims=("seed", "replicate", "time", "coordinate"))
    found = trial.squared_distance(miss)
    one = miss.values[7, 4:].reshape(4, 6)
    np.testing.assert_allclose(found.isel(seed=7, block=1), ((one @ one.T).sum() - (one**2).sum()) / 12)
    error = 6**0.5 * (2 / 12) ** 0.5 / 1000**0.5  # of 1000 estimates in 6 dimensions
    assert abs(float(found.mean())) < 4 * error
    assert float(trial.squared_distance(miss + 1).mean()) == pytest.approx(6, abs=8 * (error + 6**0.5 / 2000**0.5))


def test_figures_draw(path_runs):
    assert panels(CLAIMS["joma.thm3_path"], path_runs)
    assert panels(CLAIMS["joma.critical_points"], path_runs.isel(eta=[0]))
