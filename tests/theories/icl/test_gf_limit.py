"""The claims come out as expected, with all their controls and rivals.

The flow of all entries on few runs: it is the theory's, and a start with all entries leaves it.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.icl import gf_limit
from jaxdyn.theories.icl.gf_limit import Limit, trial


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_flow_and_theory():
    ds = jd.sweep(trial, jd.grid(Limit, start=["paper", "dense"], imbalance=0.5), 1)
    assert int(ds.status.max()) == 0
    paper, dense = (ds.sel(start=s).isel(seed=0) for s in ("paper", "dense"))
    for name in ("u", "block", "u_end", "block_end", "loss_end", "held"):
        np.testing.assert_allclose(paper[f"measured_{name}"], paper[f"predicted_{name}"], rtol=1e-6, atol=1e-7)
    assert float(paper.rest.max()) == 0 and float(dense.rest.max()) > 0.01
    assert abs(float(dense.measured_u_end - dense.predicted_u_end)) > 0.01
    assert float(paper.loss_start) > 2 * float(paper.measured_loss_end)


@pytest.mark.parametrize("wrong", [{"size": 0.0}, {"ratio": 1.5}, {"length": 0.0}, {"inputs": 1}, {"imbalance": -1.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Limit(**wrong)


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(gf_limit.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in gf_limit.CLAIMS}
