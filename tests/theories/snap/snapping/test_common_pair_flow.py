"""The flow with one common and one distinct token a class: what its runs record."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.snap.snapping.common_pair_flow import PairFlow


def test_what_the_runs_record(pair_flow_runs):
    ds = pair_flow_runs.isel(seed=0)
    assert (ds.status == 0).all()
    np.testing.assert_allclose(ds.share, 0.25)
    q = 2 * (1 + ds.per_query)
    np.testing.assert_allclose(ds.argument, (q / 2 * ds.share * ds.scale**2).transpose(*ds.argument.dims) * 13 / 12, rtol=0.1)
    np.testing.assert_allclose(ds.measured_b.isel(time=0), ds.linear.isel(time=0), rtol=0.01)  # all laws begin alike


def test_a_query_has_no_more_classes_than_there_are():
    with pytest.raises(UsageError, match="per_query is at most classes"):
        PairFlow(per_query=5.0)
