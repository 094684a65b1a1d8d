"""Figures: helpers for claims' ``plot`` functions, legends placed off the data, and ``render``, which makes one compact SVG."""

from jaxdyn.plotting.caption import describe
from jaxdyn.plotting.finish import finish
from jaxdyn.plotting.helpers import COLORS, CYCLE, RAMP, STYLE, band, default_plot, first_run, lines, order, scatter
from jaxdyn.plotting.pointer import named, of_runs
from jaxdyn.plotting.render import Drawn, render

__all__ = [
    "COLORS",
    "CYCLE",
    "RAMP",
    "STYLE",
    "Drawn",
    "band",
    "default_plot",
    "describe",
    "finish",
    "first_run",
    "lines",
    "named",
    "of_runs",
    "order",
    "render",
    "scatter",
]
