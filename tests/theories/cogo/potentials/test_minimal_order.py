"""The search for blocks of few nodes: solutions that are known, what more nodes can only improve, and its judge."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.potentials import minimal_order


def test_more_nodes_never_leave_more_and_searches_only_go_down(searched):
    """A block with one node at zero is one of the next order, so that the least loss falls with the number of nodes."""
    ds = searched.isel(seed=0)
    assert np.all(ds.loss.diff("nodes") < 1e-9) and np.all(ds.loss >= 0)
    assert np.all(ds.five_loss.diff("step") <= 1e-15)
    least = [int(ds.nodes[ds.loss.sel(mean=mean) < minimal_order.ZERO][0]) for mean in minimal_order.MEANS]
    assert tuple(least) == minimal_order.LEAST == tuple(int(x) for x in ds.measured_order)
    np.testing.assert_allclose(ds.measured_left, [*minimal_order.LEFT.values()], atol=2e-3)


def test_judge_of_the_search_rejects_every_rival_and_five_nodes_that_stop(searched):
    ds = searched
    (claim,) = minimal_order.CLAIMS
    assert all(c.passed for c in claim.judge(ds))
    for rival in claim.rivals.values():
        assert not all(c.passed for c in claim.judge(rival(ds)))
    stopped = ds.assign(five_loss=ds.five_loss.clip(2e-6))
    assert [c.name for c in claim.judge(stopped) if not c.passed] == ["slope of what five nodes leave over their squared norm"]
    with pytest.raises(jd.Inconclusive, match="at least 50 values of step"):
        claim.judge(ds.isel(step=slice(120)))
    assert np.all(ds.measured_order == [6, 4])
