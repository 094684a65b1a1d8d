"""When a curve crosses a level, the judge of the staircase, and targets that are refused."""

import jax
import jax.numpy as jnp
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.cal import staircase
from tests.theories.cal.helpers import distorted, passed


def test_crossing_interpolates(x64):
    ts, y = jnp.array([0.0, 1.0, 3.0]), jnp.array([0.0, 0.2, 0.8])
    cross = jax.jit(staircase.crossing)
    assert float(cross(ts, y, 0.5)) == pytest.approx(2.0)
    assert float(cross(ts, y, 0.9)) == 3.0 and float(cross(ts, y + 1, 0.9)) == 0.0


def test_stairs_judge():
    times = xr.DataArray([[2.0, 3.0, 6.0]], dims=("seed", "mode"))
    rank = xr.DataArray([[0.0, 1.0, 2.0, 3.0]], dims=("seed", "plateau"))
    ds = xr.Dataset({"predicted_time": times, "measured_time": 1.002 * times, "predicted_rank": rank, "measured_rank": rank})
    assert passed(staircase.judge(ds))
    assert not passed(staircase.judge(distorted(ds, "time", 1.02)))
    assert not passed(staircase.judge(ds.assign(measured_time=1.002 * times[:, ::-1])))
    assert not passed(staircase.judge(ds.assign(measured_rank=rank + 1)))


@pytest.mark.parametrize("fields", [{"modes": 7}, {"values": (1.0, 2.0, 3.0)}])
def test_a_target_fits_its_size_and_falls(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed"):
        staircase.Stairs(**fields)
