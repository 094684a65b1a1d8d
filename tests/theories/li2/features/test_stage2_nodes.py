"""The judge of single nodes, on planted places."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdyn.theories.li2.features import stage2_nodes
from tests.theories.li2.helpers import passes, refuses_opponents


def planted(seed=0):
    """Nodes of which nine in ten end where the forecast puts them, one in three in the largest irrep of the start."""
    rng = np.random.default_rng(seed)
    end = rng.integers(11, size=(16, 64)).astype(float)

    def mostly(share):
        return np.where(rng.random(end.shape) < share, end, rng.integers(11, size=end.shape))

    places = {"measured_place": end, "predicted_place": mostly(0.9), "start_place": mostly(0.3), "other_place": mostly(0.0)}
    places |= {"lot_place": mostly(0.4), "aligned_place": mostly(0.1)}
    ds = xr.Dataset({name: (("seed", "node"), value) for name, value in places.items()})
    ds = ds.assign(test_accuracy=("seed", np.ones(16)), purity=(("seed", "node"), rng.uniform(0.3, 1, end.shape)))
    return ds.assign_coords(seed=np.arange(16), irrep=np.arange(11))


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(stage2_nodes.CLAIMS[0], planted())
    refuses_opponents(stage2_nodes.CLAIMS[0], planted())
    (relu,) = (c for c in stage2_nodes.CLAIMS if c.id == "li2.stage2_nodes_relu")
    assert passes(relu, planted())
    refuses_opponents(relu, planted())


def test_the_use_of_irreps_is_compared_by_ranks():
    """Scipy's rank correlation of the counts; forecasts by the start and by other targets fall short."""
    ds = planted()
    found = stage2_nodes.agreement(ds)
    counts = [np.bincount(ds[name][3].astype(int), minlength=11) for name in ("predicted_place", "measured_place")]
    assert float(found[3]) == pytest.approx(scipy.stats.spearmanr(*counts).statistic)
    (use,) = (c for c in stage2_nodes.CLAIMS if c.id == "li2.forecast")
    assert [c.passed for c in use.judge(ds) if not c.gate] == [True, False], "counts of planted forecasts agree"


def evened(left=0.05, seed=0):
    """Nodes leave irreps forecast more than 6 times, in each third network 7, for those forecast less; a few move at random."""
    rng = np.random.default_rng(seed)
    ds = planted().isel(seed=0, drop=True).expand_dims(seed=np.arange(64))
    told = rng.integers(11, size=(64, 66)).astype(float)
    end = told.copy()
    for i, row in enumerate(end):
        most = 7 if i % 3 == 0 else 6
        spare = [node for irrep in range(11) for node in np.flatnonzero(row == irrep)[most:]]
        short = [irrep for irrep in range(11) for _ in range(6 - np.sum(row == irrep))]
        row[spare] = rng.permutation(short)[: len(spare)]
        row[:] = np.where(rng.random(66) < left, rng.integers(11, size=66), row)
    start = np.where(rng.random(told.shape) < 0.4, end, rng.integers(11, size=told.shape))
    other = rng.integers(11, size=told.shape).astype(float)
    places = {"measured_place": end, "predicted_place": told, "start_place": start, "other_place": other}
    places |= {"lot_place": start[:, ::-1], "aligned_place": other[:, ::-1]}
    return ds.drop_dims("node").assign({name: (("seed", "node"), value) for name, value in places.items()})


def test_the_forecast_of_single_nodes_does_not_tell_the_networks_use():
    (use,) = (c for c in stage2_nodes.CLAIMS if c.id == "li2.forecast")
    ds = evened()
    assert passes(use, ds) and 0 < float(stage2_nodes.agreement(ds).mean()) < 0.4
    refuses_opponents(use, ds)


def test_pure_nodes_are_judged_by_themselves():
    ds = planted()
    mixed = ds.assign(predicted_place=ds.predicted_place.where(ds.purity <= stage2_nodes.PURE, 11.0))
    assert [c.passed for c in stage2_nodes.judge(mixed)][2] is False
    pure = ds.assign(predicted_place=ds.predicted_place.where(ds.purity > stage2_nodes.PURE, 11.0))
    assert [c.passed for c in stage2_nodes.judge(pure)][2] is True
