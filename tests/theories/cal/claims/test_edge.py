"""Judge of the edge of stability."""

import xarray as xr

from jaxdyn.theories.cal.claims import edge
from tests.theories.cal.helpers import distorted, passed


def test_edge_judge_passes_over_runs_whose_flow_stays_below():
    edge_at = xr.DataArray([10.0, 20.0], dims="seed")
    ds = xr.Dataset({"predicted_sharpness": edge_at, "measured_sharpness": edge_at * 0.99, "before": edge_at, "flow": edge_at * 2})
    assert passed(edge.judge(ds))
    assert not passed(edge.judge(distorted(ds, "sharpness", 1.2)))
    below = ds.assign(flow=edge_at * [2, 0.5], measured_sharpness=edge_at * [1, 0.5], before=edge_at * [1, 0.5])
    assert passed(edge.judge(below))
    assert not passed(edge.judge(below.isel(seed=[1]))), "where no flow reaches the edge, the claim fails"
