r"""Sets of tokens in recorded thoughts, for judges and figures.

A thought holds a token whose weight is above half of the least that a set can have, :math:`V^{-1/2}` with V tokens.
"""

from __future__ import annotations

import xarray as xr

import jaxdyn as jd

STILL = {"nothing new after the first thought": jd.initial("thought", "predicted_thought")}


def members(thoughts: xr.DataArray) -> xr.DataArray:
    """Which tokens are in each thought."""
    return thoughts > 0.5 * thoughts.sizes["token"] ** -0.5


def wrong(ds: xr.Dataset) -> xr.DataArray:
    """How many tokens each thought holds or lacks against the prediction; NaN where a run is not ok."""
    return (members(ds.measured_thought) != members(ds.predicted_thought)).sum("token").where(ds.status == 0)
