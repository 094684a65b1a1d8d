"""Statistics over runs, for judges and figures (NumPy, SciPy, xarray; deterministic).

Runs that are not ok are NaN and are left out, never counted as numbers. What cannot be decided on the data at hand raises
``Inconclusive``. Plain arrays are taken to have the named dimension as their last axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import xarray as xr

from jaxdyn.errors import Inconclusive, UsageError

__all__ = [
    "bonferroni_t",
    "bonferroni_z",
    "bootstrap_interval",
    "loglog_slope",
    "mean_interval",
    "richardson",
    "slope_interval",
    "spearman",
    "welch",
    "wilson",
]


def loglog_slope(x: Any, y: Any, dim: str, least: int = 3) -> xr.DataArray:
    r"""Least-squares slope of :math:`\ln y` over :math:`\ln x` along ``dim``: the order of a quantity in a step size.

    Points where either is NaN or not positive are left out; a run with fewer than ``least`` points left, two or more, is NaN.

    Raises:
        Inconclusive: if no run has as many points.
    """
    x, y = xr.broadcast(_labelled(x, dim), _labelled(y, dim))
    good = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    if y.size == 0 or int(good.sum(dim).max()) < least:
        raise Inconclusive(f"a slope along {dim} needs at least {least} points with positive values")
    lx, ly = np.log(x.where(good)), np.log(y.where(good))
    lx, ly = lx - lx.mean(dim), ly - ly.mean(dim)
    return ((lx * ly).sum(dim) / (lx * lx).sum(dim)).where(good.sum(dim) >= least)


def slope_interval(x: Any, y: Any, dim: str, level: float = 0.95) -> tuple[float, float, float]:
    """Mean over runs of :func:`loglog_slope`, and its Student t interval ``(slope, low, high)``.

    Raises:
        Inconclusive: with fewer than three points, or fewer than two runs.
    """
    slopes = loglog_slope(x, y, dim).values.ravel()
    if np.count_nonzero(np.isfinite(slopes)) < 2:
        raise Inconclusive("an interval of a slope needs at least two runs")
    slope, low, high = mean_interval(slopes, "run", level)
    return float(slope), float(low), float(high)


def richardson(coarse: Any, fine: Any, ratio: float = 2.0, order: float = 1.0) -> Any:
    r"""Limit of vanishing step from two step sizes, :math:`(r^p y_{h/r} - y_h) / (r^p - 1)`, for an error of order ``p``.

    With the defaults ``2 * fine - coarse``. Source: Richardson 1911; Hairer, Nørsett, Wanner, Solving ODEs I, section II.4.

    Raises:
        UsageError: unless ``ratio > 1`` and ``order > 0``.
    """
    if not (ratio > 1 and order > 0):
        raise UsageError(f"ratio={ratio}, order={order} is not allowed: ratio is above 1, order above 0")
    factor = ratio**order
    return (factor * fine - coarse) / (factor - 1)


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion (scipy): ``(low, high)``.

    Raises:
        Inconclusive: if ``n`` is 0.
    """
    if n == 0:
        raise Inconclusive("a proportion needs at least one run")
    interval = scipy.stats.binomtest(int(successes), int(n)).proportion_ci(_level(level), method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: Any, dim: str, level: float = 0.95) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over ``dim`` and its Student t interval ``(mean, low, high)``; NaN bounds where fewer than two runs are ok."""
    values = _labelled(values, dim)
    n = values.count(dim)
    quantile = xr.apply_ufunc(lambda m: scipy.stats.t.ppf(0.5 + _level(level) / 2, np.where(m > 1, m - 1, np.nan)), n)
    mean = values.mean(dim)
    variance = ((values - mean) ** 2).sum(dim) / (n - 1).where(n > 1)
    half = quantile * np.sqrt(variance / n)
    return mean, mean - half, mean + half


def bootstrap_interval(values: Any, axis: int = 0, level: float = 0.95, n: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    r"""Bootstrap interval of the mean along ``axis`` (scipy), ``(low, high)``; the same draws for the same seed.

    Percentiles, expanded for few runs: with :math:`\Phi(-\sqrt{n/(n-1)}\, t_{n-1})` in each tail, since plain ones are too
    narrow (8 runs: 90% instead of 95%). A run with any NaN is left out whole.

    Source: Hesterberg 2015, What teachers should know about the bootstrap, section 5.3 (expanded percentile interval).

    Raises:
        Inconclusive: with fewer than eight runs, whose percentiles are their extremes.
    """
    values = np.moveaxis(np.asarray(values, float), axis, 0)
    values = values[np.isfinite(values).all(axis=tuple(range(1, values.ndim)))]
    if len(values) < 8:
        raise Inconclusive("a bootstrap interval needs at least eight runs")
    rng, runs = np.random.default_rng(seed), len(values)
    quantile = scipy.stats.t.isf((1 - _level(level)) / 2, runs - 1)
    expanded = 1 - 2 * float(scipy.stats.norm.sf(np.sqrt(runs / (runs - 1)) * quantile))
    result = scipy.stats.bootstrap(
        (values,), np.mean, axis=0, confidence_level=expanded, n_resamples=n, method="percentile", rng=rng
    )
    return result.confidence_interval.low, result.confidence_interval.high


def spearman(x: Any, y: Any, dim: str) -> xr.DataArray:
    """Spearman's rank correlation along ``dim``; NaN where a side is constant or fewer than three pairs are ok."""
    x, y = xr.broadcast(_labelled(x, dim), _labelled(y, dim))
    return xr.apply_ufunc(_spearman, x, y, input_core_dims=[[dim], [dim]])


def bonferroni_z(count: int, level: float = 0.95) -> float:
    r"""Two-sided normal quantile :math:`\Phi^{-1}\bigl(1 - (1 - \text{level}) / 2m\bigr)` for ``m`` simultaneous tests.

    With it, all of ``count`` true statements pass together with probability at least ``level`` (Bonferroni).

    Raises:
        UsageError: if ``count`` is below 1 or the level not between 0 and 1.
    """
    if count < 1:
        raise UsageError(f"count={count} is not allowed: it is the number of tests, at least 1")
    return float(scipy.stats.norm.isf((1 - _level(level)) / (2 * count)))


def bonferroni_t(count: int, runs: Any, level: float = 0.95) -> Any:
    r"""Two-sided Student quantile :math:`t_{n-1}` for ``m`` simultaneous tests of means whose errors are estimated from ``n`` runs.

    As :func:`bonferroni_z`, which holds where the standard error is known: with 8 runs and an estimated one its 0.27% are 2.0%.

    Args:
        count: number of tests, ``m``.
        runs: number of runs ``n`` behind each mean, one or an array; infinite below two.
        level: probability that all true statements pass together.

    Raises:
        UsageError: if ``count`` is below 1 or the level not between 0 and 1.
    """
    if count < 1:
        raise UsageError(f"count={count} is not allowed: it is the number of tests, at least 1")
    tail = (1 - _level(level)) / (2 * count)

    def quantile(n: Any) -> Any:
        return np.where(np.asarray(n) > 1, -scipy.special.stdtrit(np.maximum(np.asarray(n, float) - 1, 1), tail), np.inf)

    return xr.apply_ufunc(quantile, runs) if isinstance(runs, xr.DataArray) else quantile(runs)[()]


def welch(values: xr.DataArray, dim: str, error: Any, count: int) -> tuple[xr.DataArray, xr.DataArray]:
    r"""Welch's standard error of the difference of two means, and its degrees of freedom.

    .. math:: e^2 = s^2 / n + e_2^2, \qquad \nu = e^4 \Big/ \Big(\frac{(s^2 / n)^2}{n - 1} + \frac{e_2^4}{n_2 - 1}\Big)

    Args:
        values: one side, a run along ``dim``.
        dim: the axis of its runs.
        error: standard error of the other side's mean, published, say.
        count: from how many runs that is.
    """
    n = values.count(dim)
    ours, theirs = values.var(dim, ddof=1) / n, error**2
    return np.sqrt(ours + theirs), (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (count - 1))


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Correlation of the ranks along the last axis, for all others at once."""
    good = np.isfinite(x) & np.isfinite(y)
    count = good.sum(-1)
    if not x.size:
        return np.full(count.shape, np.nan)
    left, right = (_centred_ranks(values, good) for values in (x, y))
    size = np.sqrt((left**2).sum(-1) * (right**2).sum(-1))
    return np.divide((left * right).sum(-1), size, out=np.full(size.shape, np.nan), where=(count >= 3) & (size > 0))


def _centred_ranks(values: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Ranks of the good entries minus their mean, the mean rank where some are equal; 0 elsewhere."""
    ranks = np.nan_to_num(scipy.stats.rankdata(np.where(good, values, np.nan), axis=-1, nan_policy="omit"))
    return np.where(good, ranks - (good.sum(-1, keepdims=True) + 1) / 2, 0.0)


def _labelled(x: Any, dim: str) -> xr.DataArray:
    if isinstance(x, xr.DataArray):
        return x.astype(float)
    x = np.asarray(x, float)
    return xr.DataArray(x, dims=[*(f"axis_{i}" for i in range(x.ndim - 1)), dim][-x.ndim or 1 :])


def _level(level: float) -> float:
    if not 0 < level < 1:
        raise UsageError(f"level={level} is not allowed: it lies between 0 and 1")
    return level
