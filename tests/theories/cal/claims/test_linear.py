"""Judge of the exact solutions."""

import jaxdyn as jd
from jaxdyn.theories.cal.claims import linear as claims
from jaxdyn.theories.cal.trials import linear as runs
from tests.theories.cal.helpers import distorted, passed


def test_symmetric_factors_follow_their_closed_form():
    ds = jd.sweep(runs.symmetric_trial, jd.grid(runs.Symmetric, split=[0.0, 0.1], size=3, rank=2, samples=4), 2)
    assert passed(claims.judge(ds.sel(split=0.0)))
    assert not passed(claims.judge(distorted(ds.sel(split=0.0), "product", 1 + 1e-6)))
    miss = jd.relative_error(ds.sel(split=0.1), "product", "time row col")
    assert float(miss.min()) > 1e-3, "factors apart by 0.1 show"
