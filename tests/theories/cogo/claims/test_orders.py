"""Judge of the claim on the least number of nodes."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import orders as claims


def test_judge_of_the_search_rejects_every_rival_and_five_nodes_that_stop(searched):
    ds = searched
    (claim,) = claims.CLAIMS
    assert all(c.passed for c in claim.judge(ds))
    for rival in claim.rivals.values():
        assert not all(c.passed for c in claim.judge(rival(ds)))
    stopped = ds.assign(five_loss=ds.five_loss.clip(2e-6))
    assert [c.name for c in claim.judge(stopped) if not c.passed] == ["slope of what five nodes leave over their squared norm"]
    with pytest.raises(jd.Inconclusive, match="at least 50 values of step"):
        claim.judge(ds.isel(step=slice(120)))
    assert np.all(ds.measured_order == [6, 4])
