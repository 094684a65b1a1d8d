"""A claim's figure: its own, or measurement against prediction if the data lack the values that its own figure shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from jaxdyn import plotting
from jaxdyn.engine.judging.resolution import guarded
from jaxdyn.errors import Inconclusive

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Plot

__all__ = ["INSTEAD", "UNDRAWN", "drawn"]

MISSING = (KeyError, IndexError, ValueError, Inconclusive)  # raised by plots that select a value which the data lack
UNDRAWN = "<p>The figure could not be drawn: "  # how the sentence in place of a figure begins
INSTEAD = "Measurement against prediction: the claim's own figure shows values of a field that these settings lack"


def drawn(plot: Plot | None, data: xr.Dataset, narrowed: bool) -> str:
    """The figure as HTML.

    Args:
        plot: the claim's own; None: measurement against prediction.
        data: labelled runs.
        narrowed: whether the caller chose the settings, so that the plot may lack some.

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
