"""Three step sizes, each half of the one before: what order and limit of an error in the step size are taken from."""

from __future__ import annotations

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import stats


def halving_steps(ds: xr.Dataset) -> xr.Dataset:
    """The runs of the three smallest step sizes, in falling order.

    Raises:
        Inconclusive: fewer than three step sizes, or one that is not half of the one before.
    """
    jd.need(ds, eta=3)
    ds = ds.sortby("eta", ascending=False).isel(eta=slice(-3, None))
    if not np.allclose(ds.eta[:-1].values / ds.eta[1:].values, 2):
        raise jd.Inconclusive("the order in eta needs three step sizes, each half of the one before")
    return ds


def extrapolated(values: xr.DataArray) -> xr.DataArray:
    """Limit of vanishing step size from three halving steps, for an error with terms of first and second order."""
    coarse, middle, fine = (values.isel(eta=i, drop=True) for i in range(3))
    return stats.richardson(stats.richardson(coarse, middle), stats.richardson(middle, fine), order=2)
