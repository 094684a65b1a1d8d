"""Statistics over runs, for judges and figures (NumPy, SciPy, xarray; deterministic).

Runs that are not ok are NaN and are left out, never counted as numbers. Numbers of any size that a float has are right: squares and
sums are those of the numbers over a power of two (:func:`binade`). What cannot be decided on the data at hand raises
``Inconclusive``. Plain arrays are taken to have the named dimension as their last axis. Values are real numbers, or truth values as
0 and 1; anything else is refused, as are arrays without the dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import scipy
import xarray as xr
from numpy.typing import NDArray

from jaxdyn.errors import Inconclusive, UsageError, number, shown, whole

__all__ = [
    "Labelled",
    "binade",
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
    "wilson_ends",
]

if TYPE_CHECKING:  # NumPy's stubs take what its functions make of these for an ndarray, which has no labels
    Labelled = Any
else:
    Labelled = xr.DataArray | xr.Dataset | xr.Variable

BATCH = 2**21  # numbers that a bootstrap holds at a time, of draws and of their means
CANCELLED = 1e-6  # of the middle of Wilson's interval, below which its lower end is a difference of two equal numbers
BEYOND = 2.0**100  # times as large as their error, numbers are equal: float64 has 53 bits
MOST = 2**53  # tests at once: a float counts no further


def binade(values: Any, axis: int | tuple[int, ...] | None = None) -> NDArray[Any]:
    """The power of two at or below the largest finite size along the axes, which stay with length 1; 1 if that is zero.

    Division by it is exact. Without it, squares of numbers below 1e-154 are zero, and of those above 1e154 infinite.
    """
    sizes = np.abs(np.asarray(values, float))
    largest = np.max(sizes, axis, keepdims=True, initial=0, where=np.isfinite(sizes))
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1))


def loglog_slope(x: Any, y: Any, dim: str, least: int = 3) -> xr.DataArray:
    r"""Least-squares slope of :math:`\ln y` over :math:`\ln x` along ``dim``: the order of a quantity in a step size.

    Points where either is NaN or not positive are left out; a run with fewer than ``least`` points left, two or more, is NaN, and
    so is one whose points all have the same x.

    Raises:
        Inconclusive: if no run has as many points.
        UsageError: if ``least`` is below 2, or the two have different lengths or coordinates.
    """
    least = whole("least", least, least=2)
    x, y = _pair(x, y, dim)
    good = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    if y.size == 0 or int(good.sum(dim).max()) < least:
        raise Inconclusive(f"a slope along {dim} needs at least {least} points with positive values")
    apart = x.where(good, np.inf).min(dim) < x.where(good, -np.inf).max(dim)  # otherwise the slope of rounding
    lx, ly = np.log(x.where(good)), np.log(y.where(good))
    lx, ly = lx - lx.mean(dim), ly - ly.mean(dim)
    return ((lx * ly).sum(dim) / (lx * lx).sum(dim)).where((good.sum(dim) >= least) & apart)


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
        UsageError: unless ``ratio > 1`` and ``order > 0``, for arrays of different coordinates, and for shapes that do not fit.
    """
    ratio, order = number("ratio", ratio, above=1), number("order", order, above=0)
    coarse, fine = (np.asarray(y) if isinstance(y, list | tuple) else y for y in (coarse, fine))
    if any(np.asarray(y).dtype.kind not in "biufc" for y in (coarse, fine)):
        raise UsageError(f"coarse={shown(coarse)}, fine={shown(fine)} are not allowed: they are numbers")
    plain = [np.shape(y) for y in (coarse, fine) if not isinstance(y, xr.DataArray) and np.ndim(y)]
    if len(set(plain)) > 1:
        raise UsageError(f"coarse={shown(coarse)}, fine={shown(fine)} are not allowed: arrays without names have one shape")
    if order * np.log(ratio) > np.log(np.finfo(float).max):
        raise UsageError(f"ratio={ratio}, order={order} are not allowed: ratio to the power of order is a float")
    if (factor := ratio**order) == 1:
        raise UsageError(f"ratio={ratio}, order={order} are not allowed: ratio to the power of order is above 1 as a float")
    coarse, fine = _aligned(coarse=coarse, fine=fine)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            limit = (factor * fine - coarse) / (factor - 1)
            if np.isfinite(limit).all():
                return limit
            # term by term where a product is too large for a float
            return xr.where(np.isfinite(limit), limit, fine + (fine / (factor - 1) - coarse / (factor - 1)))[()]
    except ValueError as error:  # a plain array with a labelled one
        raise UsageError(f"coarse={shown(coarse)}, fine={shown(fine)} are not allowed: their shapes broadcast") from error


def wilson(successes: SupportsIndex | xr.DataArray, n: SupportsIndex | xr.DataArray, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion (scipy): ``(low, high)``.

    Raises:
        Inconclusive: if ``n`` is 0.
        UsageError: unless both are whole numbers, successes at most n.
    """
    runs = whole("n", n, least=0)
    passed = whole("successes", successes, least=0, most=runs)
    if runs == 0:
        raise Inconclusive("a proportion needs at least one run")
    low, high = wilson_ends(passed, runs, level)
    return float(low), float(high)


def wilson_ends(successes: Any, n: Any, level: float = 0.95) -> tuple[Any, Any]:
    r"""Wilson's score interval of proportions, arrays of them too; successes of correlated runs may be fractions.

    .. math:: \frac{p + z^2 / 2n \mp (z / n) \sqrt{k (1 - p) + z^2 / 4}}{1 + z^2 / n}, \qquad p = k / n

    for k successes.

    Source: Wilson 1927, Probable inference.
    """
    n = np.asarray(n, float)
    p = np.asarray(successes, float) / n
    z = scipy.stats.norm.isf((1 - _level(level)) / 2)
    middle, half = p + z**2 / (2 * n), z * np.sqrt(np.asarray(successes, float) * (1 - p) + z**2 / 4) / n
    unit = 1 + z**2 / n
    # the product of both ends is p^2 / unit: the difference of two equal numbers would be their rounding
    low = np.where(middle - half < CANCELLED * middle, p * (p / (middle + half)), (middle - half) / unit)
    return np.where(p == 0, 0.0, np.minimum(low, p)), np.where(p == 1, 1.0, np.maximum((middle + half) / unit, p))


def mean_interval(values: Any, dim: str, level: float = 0.95) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over ``dim`` and its Student t interval ``(mean, low, high)``; NaN bounds where fewer than two runs are ok.

    Raises:
        UsageError: if the level is not between 0 and 1.
    """
    values = _along(_labelled(values, dim), dim)
    n, unit = values.count(dim), _unit(values, dim)
    values = values / unit
    quantile = xr.apply_ufunc(lambda m: scipy.stats.t.ppf(0.5 + _level(level) / 2, np.where(m > 1, m - 1, np.nan)), n)
    mean = values.mean(dim)
    variance = ((values - mean) ** 2).sum(dim) / (n - 1).where(n > 1)
    half = quantile * np.sqrt(variance / n)
    return mean * unit, (mean - half) * unit, (mean + half) * unit


def bootstrap_interval(values: Any, axis: int = 0, level: float = 0.95, n: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    r"""Bootstrap interval of the mean along ``axis``, ``(low, high)``; the same draws for the same seed.

    Percentiles, expanded for few runs: with :math:`\Phi(-\sqrt{n/(n-1)}\, t_{n-1})` in each tail, since plain ones are too
    narrow (8 runs: 90% instead of 95%). A run with any NaN or infinity is left out whole. Besides the data themselves and ``n``
    means, some 2 million numbers are held at a time, however large the data.

    Source: Hesterberg 2015, What teachers should know about the bootstrap, section 5.3 (expanded percentile interval).

    Raises:
        Inconclusive: with fewer than eight runs, whose percentiles are their extremes.
        UsageError: for an axis that is not there, fewer than 100 draws (``n``), a negative seed, and a level not between 0 and 1.
    """
    values, n, seed = _real(values), whole("n", n, least=100), whole("seed", seed, least=0)
    if not values.ndim:
        raise UsageError(f"values={values} are not allowed: an array of runs has an axis")
    axis = whole("axis", axis, least=-values.ndim, most=values.ndim - 1)
    values = np.moveaxis(values, axis, 0)
    values = values[np.isfinite(values).all(axis=tuple(range(1, values.ndim)))]
    if len(values) < 8:
        raise Inconclusive("a bootstrap interval needs at least eight runs")
    runs = len(values)
    quantile = scipy.stats.t.isf((1 - _level(level)) / 2, runs - 1)
    expanded = 1 - 2 * float(scipy.stats.norm.sf(np.sqrt(runs / (runs - 1)) * quantile))
    tail = (1 - expanded) / 2
    rows = np.ascontiguousarray(values.reshape(runs, -1).T)
    at_once = max(1, BATCH // max(runs, n))
    parts = [_percentiles(rows[i : i + at_once], (tail, 1 - tail), n, seed) for i in range(0, len(rows), at_once)]
    low, high = np.concatenate([np.empty((2, 0)), *parts], 1).reshape(2, *values.shape[1:])
    return low[()], high[()]


def _percentiles(rows: np.ndarray, shares: tuple[float, float], n: int, seed: int) -> np.ndarray:
    """Two quantiles of ``n`` means of draws from each row; the draws are the same for all rows, and in batches of any size."""
    rng, (count, runs), unit = np.random.default_rng(seed), rows.shape, binade(rows, 1)
    means, rows, at_once = np.empty((count, n)), rows / unit, max(1, BATCH // rows.size)
    for i in range(0, n, at_once):
        chosen = rng.integers(0, runs, (min(at_once, n - i), runs))
        means[:, i : i + at_once] = np.take(rows, chosen, 1).mean(-1)
    return np.percentile(means, 100 * np.asarray(shares), axis=1, overwrite_input=True) * unit[:, 0]


def spearman(x: Any, y: Any, dim: str) -> xr.DataArray:
    """Spearman's rank correlation along ``dim``; NaN where a side is constant or fewer than three pairs are finite.

    Raises:
        UsageError: if the two have different lengths or coordinates.
    """
    x, y = _pair(x, y, dim)
    return xr.apply_ufunc(_spearman, x, y, input_core_dims=[[dim], [dim]])


def bonferroni_z(count: SupportsIndex, level: float = 0.95) -> float:
    r"""Two-sided normal quantile :math:`\Phi^{-1}\bigl(1 - (1 - \text{level}) / 2m\bigr)` for ``m`` simultaneous tests.

    With it, all of ``count`` true statements pass together with probability at least ``level`` (Bonferroni).

    Raises:
        UsageError: if ``count`` is below 1 or the level not between 0 and 1.
    """
    tests = whole("count", count, least=1, most=MOST)
    return float(scipy.stats.norm.isf((1 - _level(level)) / (2 * tests)))


def bonferroni_t(count: SupportsIndex, runs: Any, level: float = 0.95) -> Any:
    r"""Two-sided Student quantile :math:`t_{n-1}` for ``m`` simultaneous tests of means whose errors are estimated from ``n`` runs.

    As :func:`bonferroni_z`, which holds where the standard error is known: with 8 runs and an estimated one its 0.27% are 2.0%.

    Args:
        count: number of tests, ``m``.
        runs: number of runs ``n`` behind each mean, one or an array; infinite below two, and where it is NaN.
        level: probability that all true statements pass together.

    Raises:
        UsageError: if ``count`` is below 1 or the level not between 0 and 1.
    """
    tail = (1 - _level(level)) / (2 * whole("count", count, least=1, most=MOST))

    def quantile(n: Any) -> Any:
        n = _real(n)
        return np.where(n > 1, -scipy.special.stdtrit(np.maximum(n - 1, 1), tail), np.inf)

    return xr.apply_ufunc(quantile, runs) if isinstance(runs, xr.DataArray) else quantile(runs)[()]


def welch(values: xr.DataArray | np.ndarray, dim: str, error: Any, count: int) -> tuple[xr.DataArray, xr.DataArray]:
    r"""Welch's standard error of the difference of two means, and its degrees of freedom.

    .. math:: e^2 = s^2 / n + e_2^2, \qquad \nu = e^4 \Big/ \Big(\frac{(s^2 / n)^2}{n - 1} + \frac{e_2^4}{n_2 - 1}\Big)

    Args:
        values: one side, a run along ``dim``.
        dim: the axis of its runs.
        error: standard error of the other side's mean, published, say.
        count: from how many runs that is, two or more.

    Raises:
        UsageError: for a negative error, fewer than two runs, and different coordinates.
    """
    count = whole("count", count, least=2)
    values, error = _along(_labelled(values, dim), dim), error if isinstance(error, xr.DataArray) else _real(error)[()]
    if np.any(_real(error) < 0):
        raise UsageError(f"error={shown(error)} is not allowed: a standard error is at least 0")
    n, unit = values.count(dim), _unit(values, dim)
    variance = (values / unit).var(dim, ddof=1)
    _aligned(values=variance, error=error)
    if np.ndim(error) and not isinstance(error, xr.DataArray) and error.shape != variance.shape:
        raise UsageError(f"error={shown(error)} is not allowed: there is one, or one for each of {variance.size} means")
    # fourth powers are those of both errors over a power of two near the larger one
    common = xr.apply_ufunc(lambda size: binade(size, ()), np.fmax(np.sqrt(variance / n) * unit, error))
    ours, theirs = variance / n * np.minimum(unit / common, BEYOND) ** 2, (error / common) ** 2
    return np.sqrt(ours + theirs) * common, (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (count - 1))


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


def _pair(x: Any, y: Any, dim: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Two arrays with the same dimensions, ``dim`` among them."""
    x, y = xr.broadcast(*_aligned(x=_labelled(x, dim), y=_labelled(y, dim)))
    return _along(x, dim), _along(y, dim)


def _aligned(**two: Any) -> tuple[Any, ...]:
    """Two arrays as they are; labelled ones have the same coordinates: xarray would drop or add the entries that only one has."""
    try:
        xr.align(*(array for array in two.values() if isinstance(array, xr.DataArray)), join="exact")
    except xr.AlignmentError as error:
        given = ", ".join(f"{name}={shown(array)}" for name, array in two.items())
        allowed = "dimensions of one name have one length and the same coordinates"
        raise UsageError(f"{given} are not allowed: {allowed} ({_apart(*two.values())})") from error
    return tuple(two.values())


def _apart(x: xr.DataArray, y: xr.DataArray) -> str:
    """The dimensions of two arrays along which they differ."""
    shared = [dim for dim in x.dims if dim in y.dims]
    return ", ".join(str(dim) for dim in shared if x.sizes[dim] != y.sizes[dim] or not x[dim].equals(y[dim]))


def _along(x: xr.DataArray, dim: str) -> xr.DataArray:
    if dim not in x.dims:
        raise UsageError(f"an array without the dimension {dim} is not allowed: it has {', '.join(map(str, x.dims)) or 'none'}")
    return x


def _unit(values: xr.DataArray, dim: str) -> xr.DataArray:
    """The :func:`binade` of the numbers along a dimension."""
    unit: xr.DataArray = xr.apply_ufunc(lambda array: binade(array, -1)[..., 0], values, input_core_dims=[[dim]])
    return unit


def _labelled(x: Any, dim: str) -> xr.DataArray:
    if isinstance(x, xr.DataArray):
        return x.copy(data=_real(x))
    x = _real(x)
    return xr.DataArray(x, dims=[*(f"axis_{i}" for i in range(x.ndim - 1)), dim][-x.ndim or 2 :])


def _real(values: Any) -> NDArray[Any]:
    """Real numbers as float64; what a masked array hides is NaN.

    Raises:
        UsageError: for complex numbers, texts, dates, objects, and lists of unequal lengths.
    """
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else False
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufV":  # V: bfloat16, and records
            raise TypeError
        return np.where(hidden, np.nan, array.astype(float)) if np.any(hidden) else array.astype(float)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"values={shown(values)} are not allowed: they are real numbers, an array of floats or integers"
        ) from error


def _level(level: float) -> float:
    return number("level", level, above=0, below=1)
