"""Judging an order of convergence in the step size: in the limit of small steps, or fitted, and by the Richardson limit."""

from __future__ import annotations

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import stats
from jaxdyn.stats import loglog_slope, richardson

VECTOR = ("time", "entry", "row", "col")
LIMIT = "order in the limit of small step sizes"


def error_curve(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Distance between measurement and prediction over the whole trajectory, for every step size."""
    return distance(ds[f"measured_{name}"] - ds[f"predicted_{name}"])


def distance(difference: stats.Labelled) -> xr.DataArray:
    """Root of the summed squares over times and entries; NaN for runs that are not ok."""
    dims = [d for d in VECTOR if d in difference.dims]
    return np.sqrt((difference**2).sum(dims, skipna=False))


def halvings(ds: xr.Dataset) -> xr.Dataset:
    """The data sorted by falling step size.

    Raises:
        Inconclusive: unless there are at least 3 step sizes, each half of the one before.
    """
    jd.need(ds, eta=3)
    ds = ds.sortby("eta", ascending=False)
    if not np.allclose(ds.eta.values[:-1] / ds.eta.values[1:], 2.0):
        raise jd.Inconclusive("the Richardson limit needs step sizes eta that halve")
    return ds


def limit_ratio(difference: xr.DataArray, order: int) -> xr.DataArray:
    r"""Distance of the Richardson limit from the prediction, in units of its own error estimate.

    ``difference`` is measured minus predicted, per step size (falling). Its limits from two successive pairs are of order
    p + 1, so that a third of their distance (p = 1), a seventh (p = 2), estimates the error of the finer one.
    """
    last = [difference.isel(eta=i, drop=True) for i in (-3, -2, -1)]
    coarse, fine = richardson(last[0], last[1], order=order), richardson(last[1], last[2], order=order)
    estimate = distance(coarse - fine) / (2 ** (order + 1) - 1)
    return distance(fine) / estimate


def limit_order(error: xr.DataArray) -> xr.DataArray:
    r"""Order of an error in the limit of small steps, from its last three step sizes (falling by halves).

    Where :math:`e(\eta) = a\eta^p(1 + c\eta + O(\eta^2))`, the local order :math:`\log_2(e(2\eta)/e(\eta))` is
    :math:`p + c\eta/\ln 2 + O(\eta^2)`, and twice the finer local order minus the coarser one is :math:`p + O(\eta^2)`. A slope
    fitted through all step sizes keeps the part of first order, which among enough problems exceeds any slack.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # an error of zero has no order
        coarse, middle, fine = (np.log2(error.isel(eta=i, drop=True)) for i in (-3, -2, -1))
        return 2 * (middle - fine) - (coarse - middle)


def order_check(name: str, error: xr.DataArray, order: int, slack: float) -> jd.Check:
    """The slope of the error over the step size within ``order`` ± ``slack``; errors that are no numbers fail, as in any check."""
    known = bool(np.isfinite(error).any())
    slope = loglog_slope(error.eta, error, "eta") if known else error.isel(eta=0, drop=True)
    return jd.within(name, slope, order - slack, order + slack)


def order_checks(ds: xr.Dataset, name: str, order: int, slack: float) -> list[jd.Check]:
    """Order at small steps within ``order`` ± ``slack``, and the Richardson limit within 3 of its own error estimates."""
    ds = halvings(ds)
    ratio = limit_ratio(ds[f"measured_{name}"] - ds[f"predicted_{name}"], order)
    return [
        jd.within(LIMIT, limit_order(error_curve(ds, name)), order - slack, order + slack),
        jd.at_most("Richardson limit against the prediction, in error estimates", ratio, 3.0),
    ]
