"""The flow of all entries on few runs: it is the theory's, and a start with all entries leaves it."""

import numpy as np
import pytest

import jaxdyn as jd
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


def test_the_corner_is_real_at_the_start():
    with pytest.raises(jd.UsageError, match="not allowed: imbalance is above -size"):
        Limit(imbalance=-1.0)
