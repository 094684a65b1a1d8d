"""Helpers for claims' ``plot`` functions: bands, scatters, orders, families of lines, and the figure of a claim without a plot.

A plot function draws on a ``matplotlib`` Figure and leaves colours of text and axes alone: the page's own text colour (light or
dark) applies. Line colours come from ``COLORS``, which are readable on white and on near-black. Legends are added where a plot
labels its lines and makes none itself. What a helper draws carries a name (``gid``), from which captions are written.

Of very many runs a fixed number is drawn point by point or line by line, which the legend says; bands are over all of them.

The helpers take arrays or DataArrays; where ``x`` is a one-dimensional DataArray, its dimension is found in the runs by
name, every other dimension counts as runs. Runs that are not ok (NaN) are passed over; infinite numbers count in quantiles.
Numbers beyond :data:`LARGEST` are not drawn, as infinite ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import NullFormatter

from jaxdyn.plotting.pointer import of_runs, summary_of_runs
from jaxdyn.plotting.ticks import told_apart

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLORS",
    "CYCLE",
    "INK",
    "LARGEST",
    "RAMP",
    "STYLE",
    "band",
    "default_plot",
    "drawable",
    "finite",
    "first_run",
    "lines",
    "order",
    "quantiles",
    "scatter",
]

COLORS = {
    "measured": "#3a82c8",
    "theory": "#d2652a",
    "control": "#868c95",
    "band": "#3a82c8",
    "third": "#2f9673",
    "fourth": "#a163c4",
    "fifth": "#b58a1b",
    "failed": "#d34a55",
}
CYCLE = [COLORS[k] for k in ("measured", "theory", "third", "fourth", "fifth", "control")]
RAMP = LinearSegmentedColormap.from_list("jaxdyn", [COLORS["measured"], COLORS["fourth"], COLORS["theory"]])
INK = "#010203"  # stands for the page's text colour until the figure is written

STYLE = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.prop_cycle": matplotlib.cycler(color=CYCLE),  # type: ignore[attr-defined]
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "font.size": 10,
    "grid.alpha": 0.16,
    "grid.color": INK,
    "grid.linewidth": 0.6,
    "image.cmap": "viridis",
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "mathtext.fontset": "dejavusans",
    "patch.edgecolor": INK,
    "savefig.facecolor": "none",
    "svg.fonttype": "path",  # glyphs as outlines: the layout holds on every machine, whatever fonts it has
    "svg.hashsalt": "jaxdyn",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


LARGEST = 1e250  # of what is drawn, in absolute value: beyond it floats have no room for the margins and ticks of an axis
POINTS, LINES = 20_000, 200  # that are drawn at most, of entries and of runs
NAMED = "<named>"  # label of axes whose title is the name of a variable
PANELS, ACROSS = 9, 3  # of a claim without a plot: variables that are drawn at most, and side by side


def first_run(ds: xr.Dataset, *keep: str) -> xr.Dataset:
    """The first run: the first value on every axis of the runs but those kept."""
    return ds.isel({axis: 0 for axis in ds.status.dims if axis not in keep})


def _flat(x: Any, runs: Any) -> tuple[np.ndarray, np.ndarray]:
    """``x`` and the runs as an array (runs, x)."""
    dims: tuple[Any, ...] = getattr(x, "dims", ())
    if len(dims) == 1 and dims[0] in getattr(runs, "dims", ()):
        runs = runs.transpose(..., dims[0])
    x = np.asarray(x, float).ravel()
    return x, np.asarray(runs, float).reshape(-1, x.size)


def quantiles(runs: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Quantiles over the first axis, one for each level: NaN is passed over, and infinite numbers count as any others do.

    A quantile between a finite and an infinite number is infinite; NaN where there is no number, or between both infinities.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any number gives NaN, and a gap in the figure
        found: np.ndarray = np.nanquantile(runs, levels, axis=0)
        if np.isinf(runs).any():  # between an infinite number and the next NumPy's formula has no value
            low, high = (np.nanquantile(runs, levels, axis=0, method=method) for method in ("lower", "higher"))
            found = np.where(low == high, low, np.where(np.isinf(low) | np.isinf(high), low + high, found))
    return found


def drawable(values: Any) -> np.ndarray:
    """Which values can be drawn: numbers up to :data:`LARGEST`."""
    found: np.ndarray = np.abs(np.asarray(values, float)) <= LARGEST
    return found


def finite(values: np.ndarray) -> np.ndarray:
    """Values that can be drawn; NaN, a gap, for the others."""
    return np.where(drawable(values), values, np.nan)


def _numbers(runs: np.ndarray) -> np.ndarray:
    """How many runs have a number, for each entry."""
    counts: np.ndarray = (~np.isnan(runs)).sum(0)
    return counts


def band(ax: Axes, x: Any, runs: Any, label: str = "", color: Any = None, level: float = 0.9, **line: Any) -> None:
    """Median over runs as a line, the central ``level`` quantile range as a band; a gap where there is nothing to draw.

    Args:
        ax: where to draw.
        x: (n,) positions, or a one-dimensional DataArray.
        runs: (..., n); all leading axes are runs.
        label: for the legend.
        color: one of ``COLORS`` or any colour; the measured colour when missing.
        level: share of runs inside the band.
        **line: passed to the median's line (``linestyle="--"``, …).
    """
    x, flat = _flat(x, runs)
    color = COLORS.get(color or "measured", color)
    low, mid, high = finite(quantiles(flat, [(1 - level) / 2, 0.5, (1 + level) / 2]))
    if len(flat) > 1:
        ax.fill_between(x, low, high, color=color, alpha=0.22, linewidth=0, gid=f"band {level:g}")
    (median,) = ax.plot(x, mid, color=color, label=label or None, **line)
    if len(flat) > 1:
        summary_of_runs(median, "median", _numbers(flat))


def _wide(values: np.ndarray, decades: float = 2.0) -> bool:
    """Whether values are positive and span enough decades for a logarithmic axis."""
    return bool(values.size > 0 and values.min() > 0 and values.max() / values.min() > 10**decades)


def _some(count: int, most: int, label: str, what: str) -> tuple[Any, str]:
    """Which of so many points or lines are drawn, always the same ones, and what the legend says."""
    if count <= most:
        return slice(None), label
    chosen = np.sort(np.random.default_rng(0).choice(count, most, replace=False))
    return chosen, f"{label}, {most:,} of {count:,} {what}".removeprefix(", ")


def scatter(ax: Axes, predicted: Any, measured: Any, label: str = "", color: str | None = None, log: bool | None = None) -> None:
    """Measurement against prediction, one point per entry of every run, with the diagonal on which they agree.

    Args:
        ax: where to draw.
        predicted: array; broadcast against ``measured`` by name (DataArrays) or by shape.
        measured: array.
        label: for the legend.
        color: one of ``COLORS`` or any colour.
        log: logarithmic axes; by default when all values are positive and span two decades.
    """
    if hasattr(predicted, "dims") and hasattr(measured, "dims"):
        import xarray as xr

        predicted, measured = xr.broadcast(predicted, measured)
    of = measured
    p, m = (np.ravel(a) for a in np.broadcast_arrays(np.asarray(predicted, float), np.asarray(measured, float)))
    keep = drawable(p) & drawable(m)
    positive = (p > 0) & (m > 0)
    left_out = bool(log) and bool((keep & ~positive).any())  # which have no place on logarithmic axes
    keep = keep & positive if left_out else keep
    p, m = p[keep], m[keep]
    drawn, label = _some(p.size, POINTS, label, "entries")
    x, y = (p[drawn], m[drawn]) if p.size else ([np.nan], [np.nan])  # an entry of the legend, for what has no value
    gid = f"{'some ' if p.size > POINTS else ''}{'positive ' if left_out else ''}entries"
    color = COLORS.get(color or "measured", color)
    points = ax.plot(x, y, "o", color=color, alpha=0.55, markeredgewidth=0, label=label or None, gid=gid)
    if p.size:
        if np.size(of) == keep.size:
            of_runs(points, of, np.flatnonzero(keep)[drawn])
        both = np.concatenate([p, m])
        if log if log is not None else _wide(both):
            ax.set_xscale("log")
            ax.set_yscale("log")
        first = not any(line.get_gid() == "diagonal" for line in ax.lines)
        ends = [both.min(), both.max()] if both.min() < both.max() else [both.min() - 0.5, both.max() + 0.5]
        name = "measured = predicted" if first else None
        ax.plot(ends, ends, "-", color=COLORS["theory"], linewidth=1.1, zorder=1.5, label=name, gid="diagonal")
    ax.set_xlabel(ax.get_xlabel() or "predicted")
    ax.set_ylabel(ax.get_ylabel() or "measured")


def order(ax: Axes, eta: Any, errors: Any, slope: float | None = None, label: str = "", color: str | None = None) -> None:
    """Errors against the step size on logarithmic axes: median and range over runs, with a line of the expected slope.

    Args:
        ax: where to draw.
        eta: (n,) step sizes, or a one-dimensional DataArray.
        errors: (..., n); all leading axes are runs; entries that are not positive are left out.
        slope: the expected order; a dashed line through the median at the largest step size.
        label: for the legend.
        color: one of ``COLORS`` or any colour.
    """
    eta, flat = _flat(eta, errors)
    gid = "positive range" if (flat <= 0).any() else "range"
    flat = np.where(flat > 0, flat, np.nan)
    low, mid, high = finite(quantiles(flat, [0.0, 0.5, 1.0]))
    keep = np.isfinite(mid) & (eta > 0)
    eta, low, mid, high = eta[keep], low[keep], mid[keep], high[keep]
    x, y = (eta, mid) if eta.size else ([np.nan], [np.nan])  # an entry of the legend, for what has no value
    color = COLORS.get(color or "measured", color)
    bars = [mid - low, high - mid] if eta.size else None
    median, *_ = ax.errorbar(x, y, bars, fmt="o", color=color, capsize=2.5, linewidth=1.2, label=label or None, gid=gid)
    summary_of_runs(median, "median", _numbers(flat[:, keep]))
    if eta.size:
        ax.set_xscale("log")
        ax.set_yscale("log")
        if len(set(eta)) <= 5:
            sizes = sorted(map(float, set(eta)))
            ax.set_xticks(sizes, [f"{e:.0f}" if e >= 1000 and e.is_integer() else text for e, text in told_apart(sizes, 3).items()])
        ax.xaxis.set_minor_formatter(NullFormatter())
        if slope is not None:
            last, ends = int(np.argmax(eta)), np.array([eta.min(), eta.max()])
            guide = mid[last] * (ends / eta[last]) ** slope
            ax.plot(ends, guide, "--", color=COLORS["theory"], linewidth=1.3, label=f"slope {slope:g}")
    ax.set_xlabel(ax.get_xlabel() or r"step size $\eta$")
    ax.set_ylabel(ax.get_ylabel() or "error")


def lines(ax: Axes, x: Any, ys: Any, color_by: Any = None, name: str = "", label: str = "", **line: Any) -> None:
    """One line per row, coloured by a number (a ramp, with a colour bar beyond six) or by a name.

    Args:
        ax: where to draw.
        x: (n,) positions, a one-dimensional DataArray, or (k, n) where each row has positions of its own.
        ys: (k, n), or a DataArray whose other dimensions make the rows.
        color_by: (k,) numbers or names; without it all lines are thin and of the measured colour.
        name: what ``color_by`` is, for the legend or the colour bar.
        label: of all lines together, for the legend, where ``color_by`` is missing.
        **line: passed to every line.
    """
    own = np.asarray(x, float) if np.ndim(x) > 1 else None
    shared, rows = _flat(x if own is None else own[0], ys)
    rows = finite(rows)
    xs = np.broadcast_to(shared if own is None else own, rows.shape)
    if color_by is None:
        drawn, label = _some(len(rows), LINES, label, "runs")
        added = ax.plot(xs[drawn].T, rows[drawn].T, **{"color": COLORS["measured"], "alpha": 0.5, "linewidth": 0.9, **line})
        along: tuple[Any, ...] = getattr(x, "dims", ())
        if len(along) == 1 and along[0] in getattr(ys, "dims", ()):
            of_runs(added, ys.isel({along[0]: 0}, drop=True), drawn)
        if label and added:
            added[0].set_label(label)
        return
    values = list(np.asarray(color_by).ravel())
    if any(isinstance(v, str) for v in values):
        for i, (value, x, y) in enumerate(zip(values, xs, rows, strict=True)):
            ax.plot(x, y, **{"color": CYCLE[i % len(CYCLE)], "label": str(value), **line})
        return
    numbers = np.asarray(values, float)
    norm_kind = matplotlib.colors.LogNorm if _wide(numbers, 1.0) else matplotlib.colors.Normalize
    norm = norm_kind(numbers.min(), numbers.max())
    texts = told_apart(numbers.tolist(), 6)
    for value, x, y in zip(numbers.tolist(), xs, rows, strict=True):
        text = (f"{name} = {texts[value]}" if name else texts[value]) if len(numbers) <= 6 else None
        ax.plot(x, y, **{"color": RAMP(norm(value)), "label": text, **line})
    if len(numbers) > 6:
        ax.figure.colorbar(matplotlib.cm.ScalarMappable(norm, RAMP), ax=ax, label=name)


def default_plot(ds: xr.Dataset, fig: Figure) -> None:
    """For claims without a plot: measurement against prediction for every variable, over all runs; the first nine of many."""
    names = [str(n).removeprefix("predicted_") for n in ds.data_vars if str(n).startswith("predicted_")]
    names = [n for n in names if f"measured_{n}" in ds]
    if not names:
        _values_plot(ds, fig)
        return
    for name, ax in zip(_first(names, PANELS, fig), _axes(fig, min(len(names), PANELS)), strict=True):
        predicted, measured = ds[f"predicted_{name}"], ds[f"measured_{name}"]
        ax.set_title(name.replace("_", " "))
        ax.set_label(NAMED)
        for form in predicted.form.values if "form" in predicted.dims else [None]:
            scatter(ax, predicted if form is None else predicted.sel(form=form), measured, label=form or "runs")


def _axes(fig: Figure, count: int) -> list[Axes]:
    """Axes in rows of three; the figure grows with the rows."""
    across = min(count, ACROSS)
    down = -(-count // across)
    fig.set_size_inches(fig.get_figwidth(), fig.get_figheight() * (1 if down == 1 else 0.75 * down))
    axes = list(np.ravel(fig.subplots(down, across)))
    for rest in axes[count:]:
        rest.remove()
    return axes[:count]


def _first(names: Sequence[Any], most: int, fig: Figure) -> Sequence[Any]:
    """The first names, with a heading where there are more."""
    if len(names) > most:
        fig.suptitle(f"the first {most} of {len(names)} variables", fontsize=9)
    return names[:most]


def _values_plot(ds: xr.Dataset, fig: Figure) -> None:
    """Measured values in rising order, where nothing was predicted."""
    ax = fig.subplots()
    for name in _first([n for n in ds.data_vars if str(n).startswith("measured_")], len(CYCLE), fig):
        values = np.sort(np.ravel(np.asarray(ds[name], float)))
        values = values[drawable(values)] if drawable(values).any() else values[:1] * np.nan
        ax.plot((np.arange(values.size) + 0.5) / max(values.size, 1), values, label=str(name).removeprefix("measured_"))
    ax.set_xlabel("share of runs and entries below")
    ax.set_ylabel("measured value")
