"""Statistics over runs, for judges and figures (NumPy, xarray, SciPy). Runs that are not ok are NaN and are skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats
import xarray as xr

from jaxdyn.errors import Inconclusive

__all__ = ["bonferroni_z", "bootstrap_interval", "loglog_slope", "mean_interval", "richardson", "slope_interval", "wilson"]


def _labelled(x: Any, dim: str) -> xr.DataArray:
    if isinstance(x, xr.DataArray):
        return x
    x = np.asarray(x, float)
    return xr.DataArray(x, dims=[f"axis{i}" for i in range(x.ndim - 1)] + [dim])


def loglog_slope(x: Any, y: Any, dim: str) -> xr.DataArray:
    """Least-squares slope of ``ln y`` over ``ln x`` along ``dim`` (plain arrays: the last axis)."""
    x, y = xr.broadcast(_labelled(x, dim), _labelled(y, dim))
    with np.errstate(divide="ignore", invalid="ignore"):
        lx, ly = np.log(x), np.log(y)
    good = np.isfinite(lx) & np.isfinite(ly)
    if int(good.sum(dim).max()) < 3:
        raise Inconclusive(f"a slope along {dim!r} needs at least 3 points with positive values")
    lx, ly = lx.where(good), ly.where(good)
    dx, dy = lx - lx.mean(dim), ly - ly.mean(dim)
    return ((dx * dy).sum(dim) / (dx * dx).sum(dim)).where(good.sum(dim) >= 3)


def slope_interval(x: Any, y: Any, dim: str, level: float = 0.95) -> tuple[float, float, float]:
    """Mean slope over runs, and its t interval."""
    slopes = loglog_slope(x, y, dim).values.ravel()
    return tuple(float(v) for v in mean_interval(xr.DataArray(slopes, dims="run"), "run", level))


def richardson(coarse: Any, fine: Any, ratio: float = 2.0, order: float = 1.0) -> Any:
    r"""Limit of vanishing step: :math:`(r^p\,\text{fine} - \text{coarse}) / (r^p - 1)`."""
    factor = ratio**order
    return (factor * fine - coarse) / (factor - 1)


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion."""
    interval = scipy.stats.binomtest(int(successes), int(n)).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_interval(
    values: Any, axis: int = 0, level: float = 0.95, n: int = 2000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap interval of the mean along ``axis``."""
    result = scipy.stats.bootstrap(
        (np.asarray(values, float),),
        np.nanmean,
        axis=axis,
        confidence_level=level,
        n_resamples=n,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    return result.confidence_interval.low, result.confidence_interval.high


def mean_interval(values: Any, dim: str, level: float = 0.95) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over ``dim`` and its t interval."""
    values = _labelled(values, dim)
    n = values.count(dim)
    mean, half = values.mean(dim), values.std(dim, ddof=1) / np.sqrt(n)
    half = half * scipy.stats.t.ppf(0.5 + level / 2, n - 1)
    return mean, mean - half, mean + half


def bonferroni_z(count: int, level: float = 0.95) -> float:
    """Two-sided normal quantile for ``count`` simultaneous tests at a family level."""
    return float(scipy.stats.norm.isf((1 - level) / (2 * count)))
