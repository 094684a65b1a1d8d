"""What the figures of several instruments share: curves by layer with intervals over pieces, and maps of layers and heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from jaxdyn import stats
from jaxdyn.plotting import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["curve", "expected", "heads", "layers_axis"]


def curve(ax: Axes, values: xr.DataArray, over: str, label: str = "", color: str = "measured", **line: Any) -> None:
    """Mean over pieces as a line against a dimension, its 95% interval as a band; a point where there is one place only."""
    x = np.asarray(values[over], float)
    style = {"color": COLORS.get(color, color), "marker": "o" if len(x) == 1 else None, "label": label or None} | line
    if "piece" not in values.dims:
        ax.plot(x, values.values, **style)
        return
    mean, low, high = stats.mean_interval(values.transpose("piece", over), "piece")
    if values.sizes["piece"] > 1:
        ax.fill_between(x, low, high, color=style["color"], alpha=0.22, linewidth=0)
    ax.plot(x, mean, **style)


def expected(ax: Axes, x: Any, values: Any, label: str) -> None:
    """What theory expects: dashed, over a whole axis if it is one number."""
    style: dict[str, Any] = {"color": COLORS["theory"], "linestyle": "--", "linewidth": 1.3, "label": label}
    if np.ndim(values) == 0:
        ax.axhline(float(values), **style)
    else:
        ax.plot(np.asarray(x, float), np.asarray(values, float), **style)


def heads(ax: Axes, values: xr.DataArray, label: str) -> None:
    """A map of layers (across) and heads (up), coloured by a share between 0 and 1."""
    mean = values.mean([dim for dim in values.dims if dim not in ("layer", "head")]).transpose("head", "layer")
    first = float(mean.layer[0]) if "layer" in mean.coords else 0.0
    layer, head = np.arange(mean.sizes["layer"] + 1) + first - 0.5, np.arange(mean.sizes["head"] + 1) - 0.5
    mesh = ax.pcolormesh(layer, head, mean.values, vmin=0, vmax=1, cmap="viridis", shading="flat")
    ax.grid(False)
    ax.set(xlabel="layer", ylabel="head")
    _whole_ticks(ax.xaxis, ax.yaxis)
    ax.figure.colorbar(mesh, ax=ax, label=label)


def layers_axis(ax: Axes, ylabel: str, **more: Any) -> None:
    """Labels of a panel of curves by layer, and ticks at whole layers."""
    ax.set(xlabel="layer", ylabel=ylabel, **more)
    _whole_ticks(ax.xaxis)


def _whole_ticks(*axes: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
