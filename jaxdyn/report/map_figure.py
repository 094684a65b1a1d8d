"""The figure of a map: verdicts over two fields, with the border and the assumptions' bounds; values of checks over one field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.colors
import matplotlib.tri
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.spatial import cKDTree

from jaxdyn.engine.claims.description import texts
from jaxdyn.engine.claims.grid import labels_of
from jaxdyn.engine.verification.boundary import has_law
from jaxdyn.plotting import COLORS
from jaxdyn.report.by_figure import draw_bounds
from jaxdyn.report.formatting import diverged, unasked
from jaxdyn.report.panels import panels, say_edge, written

__all__ = ["MARKS", "draw"]

MARKS = {  # colour and symbol, so that either alone is enough
    "upheld": (COLORS["measured"], "o"),
    "refuted": (COLORS["failed"], "x"),
    "toothless": (COLORS["fifth"], "^"),
    "inconclusive": (COLORS["control"], "."),
    "error": (COLORS["fourth"], "s"),
    "measured": (COLORS["measured"], "D"),
}
PIXELS = 160  # number of pixels along each side of the map


def draw(result: Mapping[str, Any], fig: Figure) -> None:
    """Draw a map, given as ``Map.to_json`` returns it.

    Over two fields: colours show the verdict of the nearest cell, symbols the judged cells; the dashed line is the fitted border;
    on dotted lines the mean of an assumed quantity meets its bound. Over one field: the value of each check. Of a measured claim,
    over two fields: each reading as a colour. Above, in how many cells runs diverged, and rivals that were not asked in some cells.
    """
    if len(result["over"]) == 1:
        _values(result, fig)
    elif any(cell["verdict"] == "measured" for cell in result["cells"]):
        _readings(result, fig)
    else:
        _plane(result, fig.subplots())
    if lines := [*diverged(result["cells"]), *unasked(result.get("unasked", ()), reasons=False)]:
        fig.suptitle("\n".join(lines), fontsize="small")


def _places(axis: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> np.ndarray[Any, Any]:
    """Coordinates of cells along an axis: the value, its logarithm to base 10, or its index in the list."""
    values = [cell["at"][axis["field"]] for cell in cells]
    if "values" in axis:
        return np.array([list(axis["values"]).index(v) for v in values], float)
    return np.log10(values) if axis["log"] else np.array(values, float)


def _ends(axis: Mapping[str, Any]) -> tuple[float, float]:
    if "values" in axis:
        return -0.5, len(axis["values"]) - 0.5
    ends = axis["low"], axis["high"]
    return (math.log10(ends[0]), math.log10(ends[1])) if axis["log"] else ends


def _label(ax: Any, axis: Mapping[str, Any], which: str) -> None:
    """Set the name, the limits and the ticks of an axis."""
    getattr(ax, f"set_{which}label")(axis["field"])
    low, high = _ends(axis)
    getattr(ax, f"set_{which}lim")(low, high)
    if "values" in axis:
        values = axis["values"]
        values = labels_of([tuple(v) if isinstance(v, list) else v for v in values])
        getattr(ax, f"set_{which}ticks")(range(len(values)), written(values))
    elif axis["log"]:
        getattr(ax, f"set_{which}ticks")(*_log_ticks(low, high))


def _log_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Places, as logarithms to base 10, and labels: powers of ten; where there are fewer than two, other round numbers."""
    step = max(1, math.ceil((high - low) / 7))
    whole = range(math.ceil(low), math.floor(high) + 1, step)
    if len(whole) > 1:
        return list(whole), [f"$10^{{{k}}}$" for k in whole]
    powers = range(math.floor(low), math.ceil(high) + 1)
    numbers = [m * 10.0**k for k in powers for m in (1, 2, 5) if low <= math.log10(m * 10.0**k) <= high]
    if len(numbers) < 2:
        ends = 10.0**low, 10.0**high
        numbers = [x for x in MaxNLocator(5).tick_values(*ends) if ends[0] <= x <= ends[1]]
    return [math.log10(x) for x in numbers], texts(numbers)


def _plane(result: Mapping[str, Any], ax: Axes) -> None:
    """Draw verdicts over two fields."""
    # colours: the verdict of the nearest cell
    across, up = result["over"]
    cells = result["cells"]
    x, y = _places(across, cells), _places(up, cells)
    (left, right), (low, high) = _ends(across), _ends(up)
    unit = np.stack([(x - left) / (right - left), (y - low) / (high - low)], 1)
    middle = (np.arange(PIXELS) + 0.5) / PIXELS
    near = cKDTree(unit).query(np.stack(np.meshgrid(middle, middle), -1))[1]
    colors = np.array([matplotlib.colors.to_rgba(MARKS[cell["verdict"]][0], 0.3) for cell in cells])
    ax.imshow(colors[near], extent=(left, right, low, high), origin="lower", aspect="auto", interpolation="nearest", zorder=0)
    # symbols: the judged cells
    for verdict, (color, symbol) in MARKS.items():
        there = np.array([cell["verdict"] == verdict for cell in cells])
        if there.any():
            ax.plot(x[there], y[there], symbol, color=color, markersize=4, linestyle="", label=verdict)
    # lines: bounds of the assumptions, and the fitted border
    _assumptions(result, ax, x, y)
    if has_law(result["border"]):
        _fitted(result, ax)
    _label(ax, across, "x")
    _label(ax, up, "y")
    ax.grid(visible=False)


def _readings(result: Mapping[str, Any], fig: Figure) -> None:
    """Draw the readings over two fields, one panel per reading; cells without a value are crosses."""
    across, up = result["over"]
    cells = result["cells"]
    x, y = _places(across, cells), _places(up, cells)
    for name, ax in panels(fig, cells).items():
        values = _values_of(cells, name)
        there = np.isfinite(values)
        image = ax.scatter(x[there], y[there], c=values[there], s=60)
        if not there.all():
            ax.plot(x[~there], y[~there], "x", color=COLORS["control"], label="no value")
            ax.legend()
        fig.colorbar(image, ax=ax, label="value")
        _label(ax, across, "x")
        _label(ax, up, "y")


def _values_of(cells: Sequence[Mapping[str, Any]], name: str) -> np.ndarray[Any, Any]:
    """The values of a check or a reading, NaN where it has none."""
    checks = [next((c for c in cell.get("checks", ()) if c["name"] == name), None) for cell in cells]
    return np.array([math.nan if c is None or c["value"] is None else c["value"] for c in checks], float)


def _fitted(result: Mapping[str, Any], ax: Axes) -> None:
    """Draw the power law fitted to the border, over the border's extent."""
    across, up = (axis["field"] for axis in result["over"])
    ends = np.array([[math.log10(end[f]) for f in (across, up)] for edge in result["edges"] for end in edge])
    border, (x, y) = result["border"], ends.T
    exponent, offset = border["exponent"], math.log10(border["factor"])
    steep = abs(exponent) > 1
    t = np.array([y.min(), y.max()] if steep else [x.min(), x.max()])
    xs, ys = ((t - offset) / exponent, t) if steep else (t, offset + exponent * t)
    low, high = border["interval"]
    ax.plot(xs, ys, "--", color=COLORS["theory"], label=f"border: slope {exponent:.2f} [{low:.2f}, {high:.2f}]")


def _assumptions(result: Mapping[str, Any], ax: Axes, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    """Draw lines on which the mean of an assumed quantity meets its bound."""
    for assumption in result["assumes"]:
        values = np.array([cell["assumed"].get(assumption["name"]) for cell in result["cells"]], float)  # nan for None
        ok = np.isfinite(values)
        if ok.sum() < 4 or len(set(x[ok])) < 2 or len(set(y[ok])) < 2:
            continue
        for bound in (assumption["low"], assumption["high"]):
            if bound is not None and values[ok].min() < bound < values[ok].max():
                mesh = matplotlib.tri.Triangulation(x[ok], y[ok])
                ax.tricontour(mesh, values[ok], levels=[bound], colors=[COLORS["third"]], linestyles="dotted")
                ax.plot([], [], ":", color=COLORS["third"], label=f"{assumption['name']} = {bound:g}")


def _values(result: Mapping[str, Any], fig: Figure) -> None:
    """Draw the values of checks over one field."""
    (axis,), cells = result["over"], result["cells"]
    x = _places(axis, cells)
    for name, ax in panels(fig, cells).items():
        checks = [next((c for c in cell.get("checks", ()) if c["name"] == name), None) for cell in cells]
        y = _values_of(cells, name)
        for verdict, (color, symbol) in MARKS.items():
            there = np.array([cell["verdict"] == verdict for cell in cells])
            if there.any():
                ax.plot(x[there], y[there], symbol, color=color, markersize=5, linestyle="", label=verdict)
            off = there & ~np.isfinite(y)  # infinite, or not a number: at the upper edge
            ax.plot(x[off], np.full(off.sum(), 0.97), symbol, transform=ax.get_xaxis_transform(), color=color, markersize=5)
        if not np.isfinite(y).all():
            say_edge(ax)
        order = np.argsort(x)
        bounds = draw_bounds(ax, x[order], [checks[i] for i in order])
        values = y[np.isfinite(y)]
        if values.size and min(*values, *bounds, np.inf) > 0 and values.max() > 30 * values.min():
            ax.set_yscale("log")
        _label(ax, axis, "x")
