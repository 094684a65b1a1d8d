"""The figure of ``--by``: a claim's checks over one or two fields, where they hold, and by how much they fail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from jaxdyn.plotting import COLORS
from jaxdyn.report.panels import panels, say_edge, written

__all__ = ["draw", "draw_bounds", "drawable"]

MARKS: dict[str, dict[str, Any]] = {
    "fails": {"linestyle": "", "marker": "x", "markersize": 9, "markeredgewidth": 2, "label": "fails"},
    "undecided": {"linestyle": "", "marker": "$?$", "markersize": 9, "label": "undecided"},
}


def drawable(by: Mapping[str, Any]) -> bool:
    """Whether there are one or two fields, more than one cell, and numbers to draw."""
    return len(by["fields"]) in (1, 2) and len(by["cells"]) > 1 and any(cell.get("checks") for cell in by["cells"])


def draw(by: Mapping[str, Any], fig: Figure) -> None:
    """Draw one panel per check: its value over one field, with its bounds, or as a colour over two fields.

    Failed checks are marked by a cross, undecided ones by a question mark.

    Args:
        by: ``fields`` and ``cells`` as in ``result.json``; a cell has ``at`` and ``checks``.
        fig: the figure.
    """
    fields, cells = by["fields"], by["cells"]
    ticks = [list(dict.fromkeys(cell["at"][f] for cell in cells)) for f in fields]
    for name, ax in panels(fig, cells).items():
        checks = {tuple(cell["at"][f] for f in fields): c for cell in cells for c in cell.get("checks", ()) if c["name"] == name}
        ax.set_xlabel(fields[-1])
        _ticks(ax.xaxis, ticks[-1])
        if len(fields) == 1:
            _curve(ax, ticks[0], checks)
        else:
            ax.set_ylabel(fields[0])
            _ticks(ax.yaxis, ticks[0])
            _plane(fig, ax, ticks, checks)


def _ticks(axis: Any, values: Sequence[Any]) -> None:
    axis.set_ticks(range(len(values)), written(values))


def _number(check: Mapping[str, Any] | None) -> float:
    value = None if check is None else check["value"]
    return value if isinstance(value, int | float) else math.nan


def _curve(ax: Axes, values: Sequence[Any], by_value: Mapping[tuple[Any, ...], Mapping[str, Any]]) -> None:
    """Draw the check's value along a field, with its interval if it has one."""
    # values and intervals
    checks = [by_value.get((v,)) for v in values]
    y = np.array([_number(c) for c in checks])
    x = np.arange(len(values))
    ends = np.array([_ends(c) for c in checks])
    if np.isfinite(ends).any():
        ax.vlines(x, ends[:, 0], ends[:, 1], color=COLORS["measured"], alpha=0.5, linewidth=3, label="its interval")
    ax.plot(x, y, "o-", color=COLORS["measured"], label="value")
    for outcome, style in MARKS.items():
        there = np.array([_outcome(c) == outcome for c in checks])
        if there.any():
            ax.plot(x[there], y[there], color=COLORS["failed"], **style)
            off, edge = there & ~np.isfinite(y), ax.get_xaxis_transform()
            ax.plot(x[off], np.full(off.sum(), 0.97), transform=edge, color=COLORS["failed"], **style | {"label": ""})  # infinite
    infinite = np.array([c is not None and _outcome(c) == "passes" for c in checks]) & ~np.isfinite(y)
    ax.plot(x[infinite], np.full(infinite.sum(), 0.97), "o", transform=ax.get_xaxis_transform(), color=COLORS["measured"])
    there = np.array([c is not None for c in checks])
    if (there & ~np.isfinite(y)).any():
        say_edge(ax)
    # bounds, and the scale
    bounds = draw_bounds(ax, x, checks)
    positive = [v for v in (*y, *bounds) if np.isfinite(v)]
    if positive and min(positive) > 0 and max(positive) > 30 * min(positive):
        ax.set_yscale("log")
    ax.legend()


def draw_bounds(ax: Axes, x: np.ndarray, checks: Sequence[Mapping[str, Any] | None]) -> list[float]:
    """Draw the bounds of a check, step by step where they differ from place to place; returns those that are finite."""
    pairs = [(c or {}).get("bound") or () for c in checks]  # readings have no bound
    ends = np.array([[*np.atleast_1d(np.array(pair, float)), np.nan, np.nan][:2] for pair in pairs])
    label, finite = "bound", list[float]()
    for end in ends.T:
        here = np.isfinite(end)
        if not here.any():
            continue
        if len({*end[here]}) == 1:
            ax.axhline(end[here][0], color=COLORS["theory"], linestyle="--", label=label)
        else:
            ax.plot(x, np.where(here, end, np.nan), "--", color=COLORS["theory"], drawstyle="steps-mid", label=label)
        label, finite = "", [*finite, *end[here]]
    return finite


def _plane(fig: Figure, ax: Axes, ticks: Sequence[Sequence[Any]], checks: Mapping[tuple[Any, ...], Mapping[str, Any]]) -> None:
    """Draw the check's value over two fields as a colour."""
    values = np.array([[_number(checks.get((r, c))) for c in ticks[1]] for r in ticks[0]])
    positive = values[np.isfinite(values)]
    wide = positive.size and positive.min() > 0 and positive.max() > 30 * positive.min()
    image = ax.pcolormesh(values, norm=LogNorm() if wide else None, shading="flat")
    image.set_rasterized(False)
    ax.set_xticks(np.arange(len(ticks[1])) + 0.5, ax.get_xticklabels())  # type: ignore[arg-type]  # texts serve as labels
    ax.set_yticks(np.arange(len(ticks[0])) + 0.5, ax.get_yticklabels())  # type: ignore[arg-type]
    ax.grid(visible=False)
    places = {(c + 0.5, r + 0.5): _outcome(checks.get((a, b))) for r, a in enumerate(ticks[0]) for c, b in enumerate(ticks[1])}
    for outcome, style in MARKS.items():
        there = [place for place, what in places.items() if what == outcome]
        if there:
            ax.plot(*zip(*there, strict=True), color=COLORS["failed"], **style)
    fig.colorbar(image, ax=ax, label="value")


def _outcome(check: Mapping[str, Any] | None) -> str:
    if check is None or check.get("passed", True):  # readings neither pass nor fail
        return "passes"
    return "undecided" if check["passed"] is None else "fails"


def _ends(check: Mapping[str, Any] | None) -> tuple[float, float]:
    low, high = (check or {}).get("interval") or (None, None)
    return (math.nan if low is None else low), (math.nan if high is None else high)
