"""A claim's figure of some data: its own, or measurement against prediction where its own has not the values that it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from jaxdyn import plotting
from jaxdyn.engine.resolution import guarded
from jaxdyn.errors import Inconclusive

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Plot

__all__ = ["drawn"]

MISSING = (KeyError, IndexError, ValueError, Inconclusive)  # what a plot raises that picks a value which is not there
INSTEAD = "Measurement against prediction: the claim's own figure shows values of a field that are not among these settings"


def drawn(plot: Plot | None, data: xr.Dataset, narrowed: bool) -> str:
    """The figure as HTML.

    Args:
        plot: the claim's own; None: measurement against prediction.
        data: labelled runs.
        narrowed: the caller chose the settings, so that the plot may miss some.

    Raises:
        Exception: whatever the plot raises on the claim's own settings.
    """
    try:
        return _render(plot, data)
    except MISSING:
        if plot is None or not narrowed:
            raise
        return _render(None, data, INSTEAD)


def _render(plot: Any, data: xr.Dataset, label: str = "") -> str:
    return plotting.render(plot, guarded(data), label)
