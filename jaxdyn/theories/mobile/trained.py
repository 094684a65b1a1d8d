"""What judges of trained networks share: each at its own rate, the gate, and rivals in which some learn nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

import jaxdyn as jd

__all__ = ["RATES", "equal", "learned", "margin", "tuned", "unlearnt"]

RATES = [4e-3, 8e-3]
LEVEL = 0.95  # of each interval: four seeds
MARGIN = 0.01  # nats


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every network at the rate with the lowest validation loss at the end, mean over seeds."""
    if "lr" not in ds.dims:
        return ds
    valid = ds.curve.isel(step=-1, drop=True).sel(part="valid", drop=True)
    return ds.isel(lr=valid.mean("seed").fillna(np.inf).argmin("lr"))


def learned(ds: xr.Dataset) -> jd.Check:
    """Gate: every network, at its own rate, lowers its loss by a nat."""
    best = tuned(ds)
    start = best.curve.isel(step=0, drop=True).sel(part="test", drop=True)
    return jd.gate("loss at the start less that at the end", start - best.measured_loss, at_least=1.0)


def margin(name: str, difference: xr.DataArray, *, low: float | None = None, high: float | None = None) -> jd.Check:
    """The mean over seeds of a difference of losses, run by run (same text, same sequences)."""
    return jd.mean_within(name, difference, over="seed", low=low, high=high, level=LEVEL)


def unlearnt(field: str, *values: object) -> Callable[[xr.Dataset], xr.Dataset]:
    """Networks with one of these values of a field keep the losses of their start."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        curve = ds.curve.where(~ds[field].isin(values), ds.curve.isel(step=0, drop=True)).transpose(*ds.curve.dims)
        loss = curve.isel(step=-1, drop=True).sel(part="test", drop=True).transpose(*ds.measured_loss.dims)
        return ds.assign(measured_loss=loss)

    return breach


def equal(field: str, value: object) -> Callable[[xr.Dataset], xr.Dataset]:
    """The field makes no difference: all networks have the losses of this one."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        both = {name: ds[name].sel({field: value}, drop=True) + 0 * ds[name] for name in ("measured_loss", "curve")}
        return ds.assign({name: x.transpose(*ds[name].dims) for name, x in both.items()})

    return breach
