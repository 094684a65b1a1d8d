"""Two scalars: where gradient descent and gradient flow end, and a judge that rejects other ends."""

import numpy as np

from jaxdyn.theories.cal.claims import pair as claims
from tests.theories.cal.helpers import distorted, pair_data, passed


def test_pair_ends_where_the_reference_does():
    ds = pair_data()
    ends = ds.measured_edge.sel(start="reference", eta=[0.2, 0.3]).isel(seed=0)
    np.testing.assert_allclose(ends, [9.012, 2.97], atol=5e-3)
    np.testing.assert_allclose(ds.predicted_flow.sel(start="reference"), 9.1805, atol=5e-5)
    assert passed(claims.judge(ds))
    assert not passed(claims.judge(distorted(ds, "flow")))
    assert not passed(claims.judge(distorted(ds, "lead", 1.001)))
    assert not passed(claims.judge(distorted(ds, "edge", 0.5)))
