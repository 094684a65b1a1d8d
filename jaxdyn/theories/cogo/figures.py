"""Axes that several of CoGO's figures share."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter


def log_orders(ax: Axes, d: np.ndarray) -> None:
    """A logarithmic horizontal axis with the orders of the groups as its ticks."""
    ax.set_xscale("log")
    ax.set_xticks(d, [f"{n:g}" for n in d])
    ax.xaxis.set_minor_formatter(NullFormatter())


def ticks(ax: Axes, values: Any) -> None:
    """Ticks at these values of the horizontal axis, and nowhere else."""
    ax.set_xticks(np.asarray(values), [f"{v:g}" for v in np.asarray(values)])
    ax.minorticks_off()
