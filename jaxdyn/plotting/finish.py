"""What every figure needs after its plot function: a word in empty panels, legends off the data, clouds of points as pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from jaxdyn.plotting.helpers import COLORS
from jaxdyn.plotting.ticks import fold, keep_apart, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

__all__ = ["POINTS", "finish", "is_valueless", "points", "rasterise"]

POINTS = 1500  # symbols in a figure beyond which its clouds of points are embedded as pixels
PLACES: tuple[Any, ...] = (
    "upper right",
    "upper left",
    "lower left",
    "lower right",
    "center right",
    "center left",
    "upper center",
    "lower center",
)
PARSER = MathTextParser("path")
SAMPLES = 24  # how finely a line between two of its points is tried against a legend


def finish(fig: Figure) -> None:
    """Plain numbers on axes, apart from each other, missing legends, all laid out off the data, clouds of points as pixels.

    A panel in which nothing could be drawn says so. Words between dollar signs that are no mathematics are drawn as they are.
    """
    _unscale_empty_axes(fig)
    _keep_dollars(fig)
    for ax in fig.axes:
        if why := _emptiness(ax):
            ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=COLORS["control"])
        for axis in (ax.xaxis, ax.yaxis):
            plain_numbers(axis)
        handles, labels = ax.get_legend_handles_labels()
        if handles and ax.get_legend() is None:
            ax.legend(loc=PLACES[0], ncols=1 if len(labels) <= 6 else 2)
    _lay_out(fig)
    changed = [keep_apart(ax.xaxis) for ax in fig.axes] + [fold(axis) for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    if not _place_legends(fig) or any(changed):
        _lay_out(fig)
    rasterise(fig, POINTS)


def _unscale_empty_axes(fig: Figure) -> None:
    """Make a logarithmic axis without a positive number a linear one: matplotlib has no ticks for it, and raises."""
    for ax in fig.axes:
        for axis, unscale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
            if axis.get_scale() == "log" and not 0 < axis.get_minpos() < np.inf and min(axis.get_view_interval()) <= 0:
                unscale("linear")


def _keep_dollars(fig: Figure) -> None:
    """Draw texts whose dollar signs enclose what matplotlib cannot read as mathematics as they are: it would draw no figure."""
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)):
        axis.get_ticklabels()  # which sets their texts
    for artist in fig.findobj():
        if isinstance(artist, Text) and not _is_readable(artist.get_text()):
            artist.set_parse_math(False)
        elif not isinstance(artist, Axis) and not _is_readable(label := str(artist.get_label())):
            artist.set_label(label.replace("$", r"\$"))


def _is_readable(text: str) -> bool:
    """Whether no line of a text has mathematics, or only such as matplotlib can draw."""
    for line in text.split("\n"):
        signs = line.count("$") - line.count(r"\$")
        try:
            if signs > 0 and signs % 2 == 0:
                PARSER.parse(line)
        except ValueError:
            return False
    return True


# what is drawn


def _coordinates(artist: Any) -> np.ndarray:
    """Numbers at which an artist draws something, row by row; NaN where it does not."""
    if hasattr(artist, "get_xdata"):
        found: Any = np.ma.column_stack([np.ma.ravel(a) for a in artist.get_data(orig=False)])
    elif hasattr(artist, "get_coordinates") or not hasattr(artist, "get_path") and not hasattr(artist, "get_paths"):  # mesh, image
        found = np.ma.ravel(artist.get_array())[:, None]
    elif isinstance(artist, PathCollection):
        found = artist.get_offsets()
    elif hasattr(artist, "get_paths"):
        found = np.concatenate([np.empty((0, 2)), *(path.vertices for path in artist.get_paths())])
    else:
        found = artist.get_patch_transform().transform_path(artist.get_path()).vertices
    return np.ma.filled(np.ma.asarray(found, float), np.nan)


def _has_values(artist: Any) -> bool:
    return bool(np.isfinite(_coordinates(artist)).all(1).any())


def is_valueless(artist: Any) -> bool:
    """Whether an artist, or all parts of one, was given values of which none is finite: it has an entry in a legend only."""
    parts = [part for part in _parts(artist) if part is not None]
    return any(len(_coordinates(part)) for part in parts) and not any(map(_has_values, parts))


def _parts(artist: Any) -> list[Any]:
    return [leaf for part in artist for leaf in _parts(part)] if isinstance(artist, tuple | list) else [artist]


def _emptiness(ax: Axes) -> str:
    """Why there is nothing in a panel; empty for a panel with anything in it but lines across it."""
    if not ax.axison or ax.get_label() == "<colorbar>" or any(text.get_text() for text in ax.texts):
        return ""
    across = [a for a in ax.lines if a.get_transform() != ax.transData and a.get_marker() in ("None", "none", "", " ", None)]
    artists = [a for a in (*ax.lines, *ax.collections, *ax.images, *ax.patches) if a not in across]
    if any(map(_has_values, artists)):
        return ""
    return "nothing to draw:\nno finite value" if artists else "nothing to draw"


def _lay_out(fig: Figure) -> None:
    """Find the places of panels, labels and legends without drawing."""
    engine = fig.get_layout_engine()
    if not fig.axes:
        return
    if engine is None:
        fig.draw_without_rendering()
    else:
        engine.execute(fig)


def points(artist: Any) -> int:
    """How many points a line, a collection or an image draws."""
    if hasattr(artist, "get_xdata"):
        return int(np.size(artist.get_xdata()))
    if hasattr(artist, "get_coordinates"):  # a mesh: one cell, one path
        return int(np.size(artist.get_array()))
    offsets = artist.get_offsets() if hasattr(artist, "get_offsets") else np.ones((1, 2))
    return max(len(offsets), sum(len(p.vertices) for p in artist.get_paths()))


def _is_cloud(artist: Any) -> bool:
    """Whether the artist is drawn symbol by symbol: points without a line, a scatter, a mesh."""
    if hasattr(artist, "get_xdata"):
        return artist.get_linestyle() in ("None", "none", "", " ") and artist.get_marker() not in ("None", "none", "", " ", None)
    return hasattr(artist, "get_coordinates") or len(artist.get_offsets()) > 1


def rasterise(fig: Figure, most: int, every: bool = False) -> None:
    """Embed artists as pixels where the figure has more than ``most`` symbols; text and axes stay vectors.

    Args:
        fig: the figure.
        most: symbols that may stay vectors.
        every: all artists count, lines and bands, too, not only clouds of points.
    """
    artists = [a for ax in fig.axes for a in (*ax.lines, *ax.collections) if every or _is_cloud(a)]
    counts = [points(a) for a in artists]
    for artist, count in zip(artists, counts, strict=True):
        if sum(counts) > most and count > most / max(len(counts), 15):
            artist.set_rasterized(True)


# legends


def _place_legends(fig: Figure) -> bool:
    """Each legend to a free corner of its panel; False if some had to go below, so that all panels must be laid out again."""
    panels = [ax for ax in fig.axes if ax.get_legend() is not None]
    covering = [ax for ax in panels if not _find_place(ax)]
    if not covering:
        return True
    entries: dict[str, Any] = {}
    mergeable = True
    for ax in covering:
        for text, handle in _legend_entries(ax).items():
            mergeable &= _look(entries.setdefault(text, handle)) == _look(handle)
    if mergeable:
        for ax in covering:
            ax.get_legend().remove()  # type: ignore[union-attr]  # these panels have one
        _below_figure(fig, list(entries.values()), list(entries))
    else:
        _below_panels(fig, covering)
    return False


def _legend_entries(ax: Axes) -> dict[str, Any]:
    """The entries of a panel's legend: what was drawn, or, where that has no such label, the legend's own symbol."""
    drawn = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    legend: Any = ax.get_legend()
    pairs = zip(legend.get_texts(), legend.legend_handles, strict=True)
    return {text.get_text(): drawn.get(text.get_text(), own) for text, own in pairs}


def _look(handle: Any) -> tuple[str, ...]:
    """What tells two entries of a legend apart."""
    handle = handle[0] if isinstance(handle, tuple) else handle
    names = ("get_color", "get_facecolor", "get_linestyle", "get_marker")
    return tuple(str(getattr(handle, name)()) for name in names if hasattr(handle, name))


def _find_place(ax: Axes) -> bool:
    """Move a legend where it covers no data of its panel; False if there is no such place."""
    legend: Any = ax.get_legend()
    xy = points_drawn(ax)
    frame = ax.bbox
    if not covers(legend, xy) and _inside(legend, frame):
        return True
    for place in PLACES:
        legend.set_loc(place)
        legend.set_bbox_to_anchor((0, 0, 1, 1), ax.transAxes)
        if not covers(legend, xy) and _inside(legend, frame):
            return True
    return False


def _extent(legend: Legend) -> Bbox:
    return legend.get_window_extent().expanded(1.0, 1.0).padded(1.0)


def covers(legend: Legend, xy: np.ndarray) -> bool:
    """Whether a legend lies over a point, in pixels."""
    box = _extent(legend)
    inside = (xy[:, 0] > box.x0) & (xy[:, 0] < box.x1) & (xy[:, 1] > box.y0) & (xy[:, 1] < box.y1)
    return bool(inside.any())


def _inside(legend: Legend, frame: Bbox) -> bool:
    box = legend.get_window_extent()
    return box.width <= frame.width + 2 and box.height <= frame.height + 2


def points_drawn(ax: Axes) -> np.ndarray:
    """Points on everything that a panel draws, in pixels."""
    pieces = [np.empty((0, 2))]
    for line in ax.lines:
        xy = line.get_transform().transform(np.column_stack([np.ravel(a) for a in line.get_data(orig=False)]).astype(float))
        pieces.append(_between(xy) if line.get_linestyle() not in ("None", "none", "", " ") else xy)
    for collection in ax.collections:
        offsets = np.asarray(collection.get_offset_transform().transform(collection.get_offsets()), float)
        for path in collection.get_paths() if len(offsets) <= 1 else ():
            pieces.append(_filled(collection.get_transform().transform_path(path).vertices))  # type: ignore[arg-type]
        pieces.append(offsets if len(offsets) > 1 else pieces[0])
    for patch in ax.patches:
        box = patch.get_window_extent()
        pieces.append(_grid(box))
    for text in ax.texts:
        if text.get_text():
            pieces.append(_grid(text.get_window_extent()))
    if ax.images:
        pieces.append(_grid(ax.bbox))
    xy = np.concatenate(pieces)
    return xy[np.isfinite(xy).all(1)]


def _between(xy: np.ndarray) -> np.ndarray:
    """Points along a line."""
    if len(xy) < 2:
        return xy
    share = np.linspace(0, 1, max(2, SAMPLES * 8 // len(xy)))[:, None, None]
    return ((1 - share) * xy[:-1] + share * xy[1:]).reshape(-1, 2)


def _filled(xy: np.ndarray) -> np.ndarray:
    """Points in a filled outline: along it, and, as its two sides are drawn one after the other, between them."""
    half = len(xy) // 2
    share = np.linspace(0, 1, 9)[:, None, None]
    return np.concatenate([_between(xy), ((1 - share) * xy[:half] + share * xy[::-1][:half]).reshape(-1, 2)])


def _grid(box: Bbox) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(box.x0, box.x1, SAMPLES), np.linspace(box.y0, box.y1, SAMPLES))
    return np.column_stack([x.ravel(), y.ravel()])


def _grow(fig: Figure, pixels: float) -> None:
    """Make a figure taller, so that its panels keep their size."""
    width, height = fig.get_size_inches()
    fig.set_size_inches(width, height + pixels / fig.dpi)


def _below_figure(fig: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """One legend for all panels below them, in as many columns as fit."""
    for columns in range(len(labels), 0, -1):
        legend = fig.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.4)
        if legend.get_window_extent().width <= 0.97 * fig.bbox.width or columns == 1:
            _grow(fig, legend.get_window_extent().height + 4)
            return
        legend.remove()


def _below_panels(fig: Figure, panels: Sequence[Axes]) -> None:
    """Each panel's legend below its axis' label."""
    tallest = 0.0
    for ax in panels:
        entries = _legend_entries(ax)
        gap = (ax.bbox.y0 - ax.xaxis.get_tightbbox().y0 + 3) / ax.bbox.height  # type: ignore[union-attr]
        for columns in (3, 2, 1):
            where: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -gap)}
            moved = ax.legend(list(entries.values()), list(entries), ncols=columns, columnspacing=1.2, **where)
            if moved.get_window_extent().width <= ax.bbox.width * 1.05:
                break
        tallest = max(tallest, moved.get_window_extent().height)
    _grow(fig, tallest + 4)
