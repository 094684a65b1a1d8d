"""Shares on random graphs: trees are exact, walks are draws, graphs without room are not counted."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.sln.trials.random import BEST, LITERAL, Random, trial


@pytest.mark.slow
def test_trees_and_forms():
    ds = jd.sweep(trial, jd.grid(Random, kind="tree", nodes=[6.0, 9.0], graphs=6, rows="few", most=12), 2)
    assert float(ds.far.sel(embedding=BEST).min()) > 1 - 1e-12
    assert float(ds.counted.min()) == 1
    assert set(np.unique(ds.walk)) <= {0.0, 1.0}
    best = ds.far.sel(embedding=list(LITERAL)).mean("graph").max("embedding")
    np.testing.assert_allclose(ds.measured_routed.sel(form="printed").mean("graph"), best)
    np.testing.assert_allclose(ds.measured_routed.sel(form="derived"), ds.far.sel(embedding=BEST))


def test_graphs_without_room_or_distant_pairs_are_not_counted():
    ds = jd.sweep(trial, jd.grid(Random, nodes=6.0, density=1.0, graphs=2, rows="few", largest=6, most=20), 1)
    assert float(ds.counted.max()) == 0


def test_settings_that_are_refused():
    for fields, why in (({"nodes": 3.0}, "nodes is between"), ({"rows": "none"}, "rows is all or few"), ({"most": 3}, "room")):
        with pytest.raises(UsageError, match=why):
            Random(**fields)
