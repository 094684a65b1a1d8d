"""What the points of a figure are: coordinates on its axes, names in its legends, and the cells and seeds of their runs.

A figure carries this as JSON in its ``<metadata>``, from which a page's script tells what is under the pointer:

- ``axes``: of each panel its ``box`` in the figure's units, and ``x`` and ``y``: ``ends``, ``label``, ``log`` or ``samples`` of
  another scale, ``ticks`` that have names.
- ``series``: of each ``data-series`` in the drawing its panel ``ax``, its ``name``, what it summarises (``of``), which of its
  coordinates can be read on an axis (``xy``), and ``runs``: a table, and its index, or one per point (the first, then steps; -1:
  unknown).
- ``tables``: along each axis of the runs, the text of each place; an index counts through all axes, the last one fastest.

Which run a point belongs to is known where :func:`of_runs` was told, and where the values of a whole series tell it
(:mod:`jaxdyn.plotting.by_value`).
"""

from __future__ import annotations

import json
import unicodedata
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PathCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.mathtext import MathTextParser
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator

from jaxdyn.plotting.by_value import search
from jaxdyn.plotting.ticks import RAISED, Logarithmic, Scalar, told_apart
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SERIES", "about_points", "named", "of_runs", "summary_of_runs", "without_mathematics"]

SERIES = "series-"  # of the name (gid) of what is drawn point by point or as a line
SAMPLES = 65  # values of an axis that is neither linear nor logarithmic
LONGEST = 4000  # places along the axes of the runs, beyond which these are not listed
FAR = 72.0  # times the size of the drawing, from its lower left: matplotlib writes no symbols beyond
PARSER = MathTextParser("path")
OWNERS: weakref.WeakKeyDictionary[Any, tuple[xr.DataArray, np.ndarray]] = weakref.WeakKeyDictionary()
SUMMARIES: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
NAMES: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def of_runs(drawn: Any, values: Any, chosen: Any = None) -> None:
    """Say which entries the points of a line or a scatter are, for what a page tells of them.

    ``plotting.of_runs(ax.plot(x, error.values.ravel(), "o"), error)``

    Args:
        drawn: what ``ax.plot`` or ``ax.scatter`` returned: one artist for all entries, or as many as entries, a line for each run.
        values: a DataArray with labelled axes (cell, seed); its entries in their order are the points. Other arrays tell nothing.
        chosen: which of the entries were drawn; all by default.
    """
    if not isinstance(values, xr.DataArray):
        return
    artists = list(drawn) if isinstance(drawn, list | tuple) else [drawn]
    index = np.arange(values.size)[slice(None) if chosen is None else chosen]
    shares = [index] if len(artists) == 1 else index[:, None]
    for artist, share in zip(artists, shares, strict=True):
        OWNERS[artist] = (values, share)


def summary_of_runs(drawn: Any, what: str, counts: np.ndarray) -> None:
    """Say that the points of a line are a summary of runs, so many for each: ``median of 8 runs``, ``median of at least 3 runs``.

    A point without any run is none.
    """
    counts = counts[counts > 0]
    if counts.size:
        SUMMARIES[drawn] = f"{what} of {'at least ' if np.ptp(counts) else ''}{plural(int(counts.min()), 'run')}"


def named(drawn: Any, name: str) -> None:
    """Say what a line or a scatter is where the legend of its panel does not, or says less; ``drawn`` as for :func:`of_runs`."""
    for artist in drawn if isinstance(drawn, list | tuple) else [drawn]:
        NAMES[artist] = name


def about_points(fig: Figure, ds: xr.Dataset | None) -> str:
    """The JSON of a finished figure whose layout is found; names what it draws (gid ``series-0``, …) for it. Empty without axes."""
    panels = [ax for ax in fig.axes if ax.name == "rectilinear" and ax.axison and ax.get_label() != "<colorbar>"]
    drawn = [(i, artist, name) for i, ax in enumerate(panels) for artist, name in _drawn(ax)]
    tables: list[list[list[str]]] = []
    owners = _owners([(i, artist) for i, artist, _ in drawn], ds)
    series: list[dict[str, Any]] = []
    for i, artist, name in drawn:
        artist.set_gid(f"{SERIES}{len(series)}")
        entry: dict[str, Any] = {"ax": i, "name": without_mathematics(name), "of": SUMMARIES.get(artist, "")}
        own = artist.get_transform() if hasattr(artist, "get_xdata") else artist.get_offset_transform()
        ticked = [len(axis.get_ticklocs()) > 0 for axis in (panels[i].xaxis, panels[i].yaxis)]
        of_data = [a and b for a, b in zip(own.contains_branch_seperately(panels[i].transData), ticked, strict=True)]
        if not all(of_data):
            entry["xy"] = list(map(int, of_data))
        if artist in owners:
            table, index = owners[artist]
            entry["runs"] = [tables.index(table) if table in tables else len(tables), _steps(_owned(artist, index))]
            tables += [] if table in tables else [table]
        series.append({key: value for key, value in entry.items() if value != ""})
    axes = [_panel(ax) for ax in panels]
    return json.dumps({"axes": axes, "series": series, "tables": tables}, ensure_ascii=False, separators=(",", ":")) if axes else ""


# panels


def _panel(ax: Axes) -> dict[str, Any]:
    figure = ax.get_figure(root=True)
    assert figure is not None, "axes belong to a figure"
    scale, height = 72 / figure.dpi, figure.bbox.height
    x0, x1, y0, y1 = ax.bbox.x0, ax.bbox.x1, height - ax.bbox.y1, height - ax.bbox.y0
    sides = (ax.xaxis, ax.get_shared_x_axes()), (ax.yaxis, ax.get_shared_y_axes())
    box = [round(v * scale, 2) for v in (x0, y0, x1, y1)]
    return {"box": box} | {axis.axis_name: _axis(axis, _label(axis, shared.get_siblings(ax))) for axis, shared in sides}


def _label(axis: Any, sharing: Sequence[Axes]) -> str:
    """The label of an axis, or the one that stands at the panels that share its ends."""
    labels = {getattr(ax, f"{axis.axis_name}axis").label.get_text(): None for ax in sharing}
    own, others = axis.label.get_text(), [label for label in labels if label]
    return without_mathematics(own or (others[0] if len(others) == 1 else ""))


def _axis(axis: Any, label: str) -> dict[str, Any]:
    ends = [float(v) for v in axis.get_view_interval()]
    found: dict[str, Any] = {"ends": [float(f"{v:.7g}") for v in ends], "label": label}
    if axis.get_scale() == "log" and min(ends) > 0:
        found["log"] = 1
    elif axis.get_scale() != "linear":
        forward = axis.get_transform()
        low, high = map(float, forward.transform(np.array(ends)))
        places = np.linspace(low, high, SAMPLES)
        found["samples"] = [float(f"{v:.5g}") for v in forward.inverted().transform(places)]
    if isinstance(axis.get_major_locator(), FixedLocator | StrCategoryLocator) and not isinstance(
        axis.get_major_formatter(), Logarithmic | Scalar
    ):
        names = {
            float(f"{p:.7g}"): without_mathematics(t.get_text())
            for p, t in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
        }
        found["ticks"] = [[place, text] for place, text in names.items() if text]
    return found


def without_mathematics(text: str) -> str:
    r"""Text with its mathematics as plain characters: ``step size $\eta^2$`` as ``step size η²``."""
    pieces = text.replace("\n", " ").replace(r"\$", "\0").split("$")
    if len(pieces) % 2:  # else a dollar sign is one
        pieces[1::2] = map(_formula, pieces[1::2])
    return ("" if len(pieces) % 2 else "$").join(pieces).replace("\0", "$")


def _formula(latex: str) -> str:
    """A formula in one line by its symbols; what stands on several lines stays as its source."""
    try:
        *_, glyphs, rules = PARSER.parse(f"${latex}$")
    except ValueError:
        return latex
    if not glyphs or rules:
        return latex
    size = max(glyph[1] for glyph in glyphs)
    line = next(glyph[-1] for glyph in glyphs if glyph[1] == size)
    parts: list[tuple[str, str]] = []  # where symbols stand (^, _ or on the line), and which
    accent = ""
    for _, own, number, *_, up in glyphs:
        if unicodedata.combining(letter := chr(number)):  # comes before its letter
            accent = letter
            continue
        place = "" if own > 0.9 * size else "^" if up > line else "_"
        before = parts.pop()[1] if parts and parts[-1][0] == place else ""
        parts.append((place, before + letter + accent))
        accent = ""
    return "".join(
        text.translate(RAISED) if place == "^" and set(map(ord, text)) <= RAISED.keys() else place + text for place, text in parts
    )


# what is drawn


def _drawn(ax: Axes) -> list[tuple[Any, str]]:
    """Lines and scatters of a panel that are not pixels, with their names; without what belongs to error bars."""
    bars = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    names: dict[Any, str] = {c.lines[0]: str(c.get_label()) for c in bars if c.lines[0] is not None}
    parts = {part for c in bars for part in c.lines[1]}
    artists = [*(a for a in ax.lines if a not in parts), *(a for a in ax.collections if isinstance(a, PathCollection))]
    shown = [a for a in artists if not a.get_rasterized() and a.get_visible() and len(_xy(a))]
    labels = {a: "" if (name := names.get(a, str(a.get_label()))).startswith("_") else name for a in shown}
    return [(a, NAMES.get(a, label)) for a, label in labels.items()]


def _xy(artist: Any) -> np.ndarray:
    """The points of a line or a scatter (n, 2), in data units; NaN where nothing is drawn."""
    columns = [np.ma.ravel(a) for a in artist.get_data(orig=False)] if hasattr(artist, "get_xdata") else None
    found = artist.get_offsets() if columns is None else np.ma.column_stack(columns)
    return np.ma.filled(np.ma.asarray(found, float), np.nan)


def _has_symbols(artist: Any) -> bool:
    return not hasattr(artist, "get_xdata") or artist.get_marker() not in ("None", "none", "", " ", None)


def _written(artist: Any, count: int) -> np.ndarray:
    """Of every symbol in the file the point that it is at; -1 for one at none. Nothing where only some points have a symbol.

    Matplotlib clips the path through a line's points far outside the drawing, where zero lies on a logarithmic axis: points there
    have no symbol, and there are symbols where the path leaves the region.
    """
    if count == 1:
        return np.zeros(1, int)
    if not hasattr(artist, "get_xdata"):
        with np.errstate(all="ignore"):
            return np.flatnonzero(np.isfinite(np.asarray(artist.get_offset_transform().transform(_xy(artist)))).all(1))
    if artist.get_markevery() is not None:
        return np.zeros(0, int)
    with np.errstate(all="ignore"):
        places = np.asarray(artist.get_transform().transform(_xy(artist)))
    box = artist.get_figure(root=True).bbox
    region = (0.0, box.height - FAR * box.height, FAR * box.width, box.height)
    at: dict[tuple[float, float], list[int]] = {}
    for i, (x, y) in reversed(list(enumerate(map(tuple, places)))):
        at.setdefault((x, y), []).append(i)
    segments = Path(places).iter_segments(clip=region, simplify=False)
    found = [known.pop() if (known := at.get((x, y))) else -1 for *_, x, y in (vertices for vertices, _ in segments)]
    return np.array(found, int)


def _owned(artist: Any, index: np.ndarray) -> np.ndarray:
    """The entries of the symbols in the file; -1 for one that is at no point."""
    written = _written(artist, len(index))
    return np.where(written < 0, -1, index[written])


def _steps(index: np.ndarray) -> int | list[int]:
    """An index that is the same for all points, or the first and the steps from each to the next, which compress well."""
    return int(index[0]) if index.size == 1 else [int(v) for v in np.diff(index, prepend=0)]


# runs


def _owners(drawn: Sequence[tuple[int, Any]], ds: xr.Dataset | None) -> dict[Any, tuple[list[list[str]], np.ndarray]]:
    """Of artists, with their panels, whose points belong to known runs: the table of these and an index, one or one per point."""
    owners = {a: (_table(OWNERS[a][0]), OWNERS[a][1]) for _, a in drawn if a in OWNERS}
    if ds is not None and "status" in ds and ds.status.ndim:
        untold = [(panel, a) for panel, a in drawn if a not in OWNERS and a not in SUMMARIES]
        runs = search([(panel, _xy(a)) for panel, a in untold], ds)
        found = {a: own for (_, a), own in zip(untold, runs, strict=True) if own is not None and (own.size == 1 or _has_symbols(a))}
        table = _table(ds.status) if found else []
        owners |= {a: (table, index) for a, index in found.items()}
    return {a: (table, index) for a, (table, index) in owners.items() if table and (index.size == 1 or len(_xy(a)) == index.size)}


def _table(values: xr.DataArray) -> list[list[str]]:
    """Along each axis the text of each place: what was selected, first; nothing for one place, unless it is a seed.

    Empty where there are too many places.
    """
    if sum(values.sizes.values()) > LONGEST:
        return []
    labels = {str(name): coord for name, coord in values.coords.items()}
    table = [[", ".join(_texts(name, coord.values.ravel())[0] for name, coord in labels.items() if not coord.dims)]]
    for dim in map(str, values.dims):
        names = [name for name, coord in labels.items() if coord.dims == (dim,) and (coord.size > 1 or name == "seed")]
        rows = zip(*(_texts(name, labels[name].values) for name in names), strict=True)
        table.append([", ".join(row) for row in rows] or [""] * values.sizes[dim])
    return table


def _texts(name: str, values: np.ndarray) -> list[str]:
    """Values of a field with its name."""
    listed = values.tolist()
    told = told_apart(listed, 4) if values.dtype.kind == "f" else {}
    texts = [told[value] for value in listed] if told else map(str, listed)
    return [f"{name} {text}" if name == "seed" else f"{name} = {text}" for text in texts]
