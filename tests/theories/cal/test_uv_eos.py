"""Two scalars: where gradient descent and gradient flow end, and a judge that rejects other ends."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cal import uv_eos as runs
from tests.theories.cal.helpers import distorted, pair_data, passed


@pytest.mark.slow
def test_a_start_that_is_handed_in_ends_at_its_own_sharpness():
    ds = jd.sweep(runs.trial, jd.grid(runs.Pair, eta=0.05, u=[2.0, 2.5], v=0.1, horizon=30.0), 1)
    np.testing.assert_allclose(ds.measured_flow.values.ravel(), np.sqrt((np.array([2.0, 2.5]) ** 2 - 0.01) ** 2 + 4), rtol=1e-8)


def test_pair_ends_where_the_reference_does():
    ds = pair_data()
    ends = ds.measured_edge.sel(start="reference", eta=[0.2, 0.3]).isel(seed=0)
    np.testing.assert_allclose(ends, [9.012, 2.97], atol=5e-3)
    np.testing.assert_allclose(ds.predicted_flow.sel(start="reference"), 9.1805, atol=5e-5)
    assert passed(runs.judge(ds))
    assert not passed(runs.judge(distorted(ds, "flow")))
    assert not passed(runs.judge(distorted(ds, "lead", 1.001)))
    assert not passed(runs.judge(distorted(ds, "edge", 0.5)))
