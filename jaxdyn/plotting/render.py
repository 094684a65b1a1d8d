"""``render``: a claim's figure as one compact SVG element."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure

from jaxdyn.plotting.caption import describe
from jaxdyn.plotting.finish import finish, rasterise
from jaxdyn.plotting.helpers import STYLE, default_plot
from jaxdyn.plotting.pointer import about_points
from jaxdyn.plotting.svg import GLYPH, compact, with_metadata

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["MOST", "Drawn", "render"]

MOST = 40_000  # characters of a figure without its letters' outlines; beyond, first clouds of points and then lines become pixels
POINTS_PER_INCH = 72  # a figure is laid out in the units of its file, so that no text is measured at two sizes
STEPS = (
    (400, False, 160),
    (600, True, 160),
    (60, True, 110),
    (0, True, 80),
    (0, True, 50),
)  # symbols that stay vectors, lines too, dpi


class _Canvas(FigureCanvasSVG):
    """Measures text as it is written; matplotlib's own would measure with hinted pixels, and make a renderer for each question."""

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        width, height = figure.get_size_inches() * POINTS_PER_INCH
        self._measure = RendererSVG(width, height, io.StringIO(), image_dpi=POINTS_PER_INCH)

    def get_renderer(self) -> RendererSVG:
        return self._measure


class Drawn(Figure):
    """A figure that a notebook shows by itself, whether or not pyplot was imported there."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=2 * POINTS_PER_INCH)
        return picture.getvalue()


def render(plot: Callable[[xr.Dataset, Figure], None] | None, ds: xr.Dataset, label: str = "") -> str:
    """Draw a claim's figure (7 inches wide) and return it as one ``<svg>`` element for an HTML page.

    The same data give the same bytes. Text and axes take the page's text colour, the background is transparent. In a figure
    with very many points the data are embedded as pixels, text and axes stay vectors. Ids are unique to the drawing, apart
    from those of letters' outlines, which are the same in all figures. What its points are (:mod:`jaxdyn.plotting.pointer`) is
    in its ``<metadata>``.

    Args:
        plot: the claim's plot; :func:`default_plot` when None.
        ds: the claim's Dataset.
        label: what the figure shows, for readers who cannot see it and for the caption; read from its axes and legends by default.

    Raises:
        Exception: whatever the claim's plot raises.
    """
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **STYLE}):  # type: ignore[dict-item]
        fig = Figure(figsize=(7, 3.5), layout="constrained", dpi=POINTS_PER_INCH)
        canvas = _Canvas(fig)
        (plot or default_plot)(ds, fig)
        finish(fig)
        fig.set_layout_engine("none")  # the layout is found; it is kept, however often the figure is written
        label = label or describe(fig) or "figure"
        points = about_points(fig, ds)
        svg = _written(canvas, label, 160)
        for most, every, dpi in STEPS:
            if len(GLYPH.sub("", svg)) <= MOST:
                break
            rasterise(fig, most, every)
            svg = _written(canvas, label, dpi)
    return with_metadata(svg, points)


def _written(canvas: _Canvas, label: str, dpi: int) -> str:
    buffer = io.StringIO()
    canvas.figure.dpi = dpi  # of what is embedded as pixels
    canvas.print_svg(buffer, metadata={"Date": None})  # `savefig` would draw twice, once for a layout that is there already
    return compact(buffer.getvalue(), label)
