"""The search for blocks of few nodes: solutions that are known, what more nodes can only improve, and its settings."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.trials import orders


def test_more_nodes_never_leave_more_and_searches_only_go_down(searched):
    """A block with one node at zero is one of the next order, so that the least loss falls with the number of nodes."""
    ds = searched.isel(seed=0)
    assert np.all(ds.loss.diff("nodes") < 1e-9) and np.all(ds.loss >= 0)
    assert np.all(ds.five_loss.diff("step") <= 1e-15)
    least = [int(ds.nodes[ds.loss.sel(mean=mean) < orders.ZERO][0]) for mean in orders.MEANS]
    assert tuple(least) == orders.LEAST == tuple(int(x) for x in ds.measured_order)
    np.testing.assert_allclose(ds.measured_left, [*orders.LEFT.values()], atol=2e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: orders.Search(starts=0), "starts=0 is not allowed: there is at least one start"),
        (lambda: orders.Search(steps=0), "steps=0 is not allowed"),
        (lambda: orders.Search(spread=0.0), "spread=0.0 is not allowed: spread is positive"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
