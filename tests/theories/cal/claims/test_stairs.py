"""Judge of the staircase."""

import xarray as xr

from jaxdyn.theories.cal.claims import stairs
from tests.theories.cal.helpers import distorted, passed


def test_stairs_judge():
    times = xr.DataArray([[2.0, 3.0, 6.0]], dims=("seed", "mode"))
    rank = xr.DataArray([[0.0, 1.0, 2.0, 3.0]], dims=("seed", "plateau"))
    ds = xr.Dataset({"predicted_time": times, "measured_time": 1.002 * times, "predicted_rank": rank, "measured_rank": rank})
    assert passed(stairs.judge(ds))
    assert not passed(stairs.judge(distorted(ds, "time", 1.02)))
    assert not passed(stairs.judge(ds.assign(measured_time=1.002 * times[:, ::-1])))
    assert not passed(stairs.judge(ds.assign(measured_rank=rank + 1)))
