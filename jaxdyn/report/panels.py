"""A grid of panels, one per check, for figures that show several checks over the same cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["PANELS", "panels"]

PANELS = 4  # largest number of panels; further checks appear in tables only


def panels(fig: Figure, cells: Sequence[Mapping[str, Any]]) -> dict[str, Axes]:
    """One titled panel per check of the cells, by the check's name: up to two in one row, more in two rows."""
    names = list(dict.fromkeys(check["name"] for cell in cells for check in cell.get("checks", ())))[:PANELS]
    rows = 1 if len(names) < 3 else 2
    grid = fig.subplots(rows, max(1, math.ceil(len(names) / rows)), squeeze=False).ravel()
    for ax in grid[len(names) :]:
        ax.remove()
    for ax, name in zip(grid, names, strict=False):
        ax.set_title(name, wrap=True)
    return dict(zip(names, grid, strict=False))
