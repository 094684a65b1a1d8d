r"""Sets of tokens in recorded thoughts, for judges and figures.

A thought holds a token whose weight is above half of the least that a set can have, :math:`V^{-1/2}` with V tokens.
"""

from __future__ import annotations

import xarray as xr

__all__ = ["held", "still", "wrong"]


def held(thoughts: xr.DataArray) -> xr.DataArray:
    """Which tokens are in each thought."""
    return thoughts > 0.5 * thoughts.sizes["token"] ** -0.5


def wrong(ds: xr.Dataset) -> xr.DataArray:
    """How many tokens each thought holds or lacks against the prediction; NaN where a run is not ok."""
    return (held(ds.measured_thought) != held(ds.predicted_thought)).sum("token").where(ds.status == 0)


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing new after the first thought."""
    first = ds.predicted_thought.isel(thought=0, drop=True)
    return ds.assign(predicted_thought=first.broadcast_like(ds.predicted_thought).transpose(*ds.predicted_thought.dims))
