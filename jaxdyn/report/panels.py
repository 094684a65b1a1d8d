"""A grid of panels, one per check, for figures that show several checks over the same cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxdyn.engine.claims.description import texts

__all__ = ["EDGE", "panels", "say_edge", "written"]

ACROSS = 2  # panels in a row
HEIGHT = 2.0  # least, of a row in inches
EDGE = "at the upper edge: not finite"


def panels(fig: Figure, cells: Sequence[Mapping[str, Any]]) -> dict[str, Axes]:
    """One titled panel per check of the cells, by the check's name: rows of two, in a figure that grows with them."""
    names = list(dict.fromkeys(check["name"] for cell in cells for check in cell.get("checks", ())))
    rows, columns = max(1, math.ceil(len(names) / ACROSS)), max(1, min(len(names), ACROSS))
    if rows > 2:
        width, height = fig.get_size_inches()
        fig.set_size_inches(width, max(height, HEIGHT * rows))
    grid = fig.subplots(rows, columns, squeeze=False).ravel()
    for ax in grid[len(names) :]:
        ax.remove()
    for ax, name in zip(grid, names, strict=False):
        ax.set_title(name, wrap=True)
    return dict(zip(names, grid, strict=False))


def say_edge(ax: Axes) -> None:
    """Add to a panel's legend what symbols at its upper edge stand for."""
    ax.plot([], [], linestyle="", label=EDGE)


def written(values: Sequence[Any]) -> list[str]:
    """Values of a field as labels of an axis: a dollar sign in a word is one, and begins no mathematics."""
    return [text.replace("$", r"\$") for text in texts(values)]
