"""Judge of the bound, for both theorems."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.rev import bounds
from jaxdyn.theories.rev.claims import thm3, thm4
from tests.theories.rev.helpers import distorted, passed, plain


def test_bound_judges(reversal_runs, cot_runs):
    ds = plain(reversal_runs)
    assert passed(bounds.judge_bound, ds)
    assert not passed(bounds.judge_bound, distorted(ds, "exponent", 1.1))
    assert not passed(bounds.judge_bound, distorted(ds, "bound", 1.1))
    assert not passed(bounds.judge_bound, plain(reversal_runs, "simplified"))
    assert not passed(bounds.judge_bound, thm3.exponent_one(ds))
    np.testing.assert_allclose(thm3.exponent_one(ds).predicted_bound, plain(reversal_runs, "simplified").predicted_bound)
    with pytest.raises(jd.Inconclusive, match="no record is late enough"):
        bounds.judge_bound(ds.isel(record=slice(2)))
    chains = plain(cot_runs).sel(eta=0.5)
    assert passed(thm4.judge_direct, chains)
    assert not passed(thm4.judge_direct, cot_runs.sel(form="derived", context="entity", leak=1.0, eta=0.5))
