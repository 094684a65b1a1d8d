"""Both sides of the identities on a few graphs, and what a breach does."""

import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.sln.linegraph import Line, trial

SMALL = {"nodes": 6.0, "largest": 8, "most": 15, "graphs": 4}


@pytest.mark.slow
def test_identities():
    ds = jd.sweep(trial, jd.grid(Line, kind=["random", "tree", "disconnected"], walk=[0.0, 1.0], **SMALL), 1)
    for name in ("degree", "first", "resistance"):
        part = ds.sel(walk=1.0, kind=["random", "tree"])
        assert float(abs(part[f"measured_{name}"] - part[f"predicted_{name}"]).max()) < 1e-10
    tree = ds.sel(kind="tree")
    error = abs(tree.measured_along - tree.predicted_along).max(("graph", "edge", "other"))
    assert float(error.sel(walk=1.0).max()) < 1e-10 and float(error.sel(walk=0.0).max()) > 0.1
    assert float(ds.second.sel(kind="disconnected").max()) < 1e-12 < float(ds.second.sel(kind="random").min())
    assert float(ds.room.min()) == 1


def test_settings_that_are_refused():
    with pytest.raises(UsageError, match="nodes is at most largest"):
        Line(nodes=20.0)
