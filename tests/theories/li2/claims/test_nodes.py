"""The judge of single nodes, on planted places."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdyn.theories.li2.claims import nodes
from tests.theories.li2.helpers import passes, refuses_opponents


def planted(seed=0):
    """Nodes of which nine in ten end where the forecast puts them, one in three in the largest irrep of the start."""
    rng = np.random.default_rng(seed)
    end = rng.integers(11, size=(16, 64)).astype(float)

    def mostly(share):
        return np.where(rng.random(end.shape) < share, end, rng.integers(11, size=end.shape))

    places = {"measured_place": end, "predicted_place": mostly(0.9), "start_place": mostly(0.3), "other_place": mostly(0.0)}
    ds = xr.Dataset({name: (("seed", "node"), value) for name, value in places.items()})
    return ds.assign(test_accuracy=("seed", np.ones(16))).assign_coords(seed=np.arange(16), irrep=np.arange(11))


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(nodes.CLAIMS[0], planted())
    refuses_opponents(nodes.CLAIMS[0], planted())
    (relu,) = (c for c in nodes.CLAIMS if c.id == "li2.stage2_nodes_relu")
    assert passes(relu, planted())
    refuses_opponents(relu, planted())


def test_the_use_of_irreps_is_compared_by_ranks():
    """Scipy's rank correlation of the counts; forecasts by the start and by other targets fall short."""
    ds = planted()
    found = nodes.agreement(ds)
    counts = [np.bincount(ds[name][3].astype(int), minlength=11) for name in ("predicted_place", "measured_place")]
    assert float(found[3]) == pytest.approx(scipy.stats.spearmanr(*counts).statistic)
    assert [c.passed for c in nodes.judge_use(ds) if not c.gate] == [True, True]
    (use,) = (c for c in nodes.CLAIMS if c.id == "li2.forecast")
    assert not passes(use, ds.assign(predicted_place=ds.other_place))
    assert not passes(use, ds.assign(predicted_place=ds.start_place))
