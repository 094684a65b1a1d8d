"""The judges of the order of learning on made-up arrivals."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import trees
from jaxdyn.theories.joma.claims import hier_order as claims

from ..helpers import upheld

CLAIMS = {c.id: c for c in claims.CLAIMS}


def runs(slope: float, seeds: int = 6, edges: int = 3) -> xr.Dataset:
    """Arrivals that depend on H with a slope (with latents), and do not (without), with noise and pairs that never arrive."""
    rng, height = np.random.default_rng(0), trees.cla_heights(edges)
    n = len(height)
    noise = rng.normal(size=(2, seeds, 3, n, n))
    arrival = 100 + np.array([slope, 0.0])[:, None, None, None, None] * height + noise
    arrival = np.where(arrival > 103, 201, arrival)
    arrival[..., np.arange(n), np.arange(n)] = 201  # a token is no context of its own
    dims = ("latents", "seed", "subtree", "query", "token")
    ancestor = np.broadcast_to(height, (2, seeds, n, n))
    data = {"measured_arrival": (dims, arrival), "ancestor": (("latents", "seed", "query", "token"), ancestor)}
    return xr.Dataset(data, {"latents": ["deep", "shallow"], "seed": np.arange(seeds)})


def test_rank_correlation_is_spearmans():
    ds = runs(0.7)
    off = ~np.eye(8, dtype=bool)
    values = claims.rank_correlation(ds)
    for i in range(2):
        for j in range(6):
            arrival = ds.measured_arrival.values[i, j][:, off].ravel()
            expected = scipy.stats.spearmanr(np.tile(trees.cla_heights(3)[off], 3), arrival).statistic
            assert values.values[i, j] == pytest.approx(expected, rel=1e-12)


def test_rank_correlation_is_nan_for_a_run_that_is_not_ok():
    ds = runs(0.7)
    values = claims.rank_correlation(ds.where(ds.seed != 2))
    assert np.all(np.isnan(values.sel(seed=2)))
    assert np.all(np.isfinite(values.drop_sel(seed=2)))


def test_judges_of_order():
    forward, backward, none = runs(0.7, 100), runs(-0.7, 100), runs(0.0, 100)
    assert upheld(claims.judge_order, forward)
    assert upheld(claims.judge_reverse, backward)
    for judge, other in ((claims.judge_order, backward), (claims.judge_reverse, forward)):
        assert not upheld(judge, other)
        assert not upheld(judge, none)
    for name, ds in (("joma.hier_order", forward), ("joma.hier_order_balanced", backward)):
        others = [c.breach for c in CLAIMS[name].controls.values() if callable(c.breach)]
        for other in (*others, *CLAIMS[name].rivals.values()):
            assert not upheld(CLAIMS[name].judge, other(ds))
    with pytest.raises(jd.Inconclusive, match="latents = shallow is needed"):
        claims.judge_order(forward.isel(latents=[0]))


def test_judge_of_time_rejects_a_distortion():
    dims = ("latents", "rho", "seed", "height")
    mean = np.array([[[130.0, 150.0], [100.0, 105.0]], [[155.0, 155.0], [110.0, 110.0]]])[:, :, None]
    predicted = np.broadcast_to(mean, (2, 2, 5, 2))
    noise = np.random.default_rng(0).normal(size=predicted.shape)
    data = {
        "predicted_time": (dims, predicted),
        "measured_time": (dims, predicted + noise),
        "reached": (dims, np.ones((2, 2, 5, 2))),
    }
    ds = xr.Dataset(data, {"latents": ["deep", "shallow"], "rho": [0.7, 0.9]})
    assert upheld(claims.judge_time, ds)
    assert not upheld(claims.judge_time, ds.assign(predicted_time=1.15 * ds.predicted_time))
    for rival in CLAIMS["joma.hier_time"].rivals.values():
        assert not upheld(claims.judge_time, rival(ds))
    assert not upheld(claims.judge_time, ds.assign(reached=0.85 * ds.reached))
