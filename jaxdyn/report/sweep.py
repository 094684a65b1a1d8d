"""The page of a sweep of what is no claim: curves and numbers over the swept fields, how runs ended, all in one file."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from markupsafe import Markup

from jaxdyn import plotting, status
from jaxdyn.engine.claims.description import field_texts, texts
from jaxdyn.plotting import COLORS, CYCLE, RAMP
from jaxdyn.plotting.helpers import LARGEST, drawable, finite
from jaxdyn.report.page import POLICY, asset, environment
from jaxdyn.report.sweep_table import Numbers, Table, quantiles
from jaxdyn.version import installed_version

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_curves", "draw_parallel", "draw_points", "draw_scalars", "page"]

COLOURED, PANELS, LINES = 6, 9, 200  # values of a field told apart by colour; panels of a figure; lines of a figure
ROWS, FAILED, DRAWN, COLUMNS = 200, 50, 12, 6  # of the table, of the list of failed runs; variables drawn; variables in the table
MANY_FIELDS = 4  # from so many swept fields on, a grid is drawn in parallel coordinates, too


def page(found: Table, title: str, facts: Sequence[tuple[str, str]], command: str) -> str:
    """The page as HTML.

    Args:
        found: the runs.
        title: of the page, the trial's name.
        facts: what the head of the page says of the sweep, name and text.
        command: makes the page again.
    """
    sections = _sections(found)
    columns = list(found.scalars)[:COLUMNS]
    failed = [
        {"where": found.words(cell) or "all runs", "word": word, "seeds": _seeds(seeds)} for cell, word, seeds in found.failed()
    ]
    template = environment().get_template("sweep.html")
    return template.render(
        policy=POLICY,
        style=Markup(asset("report.css")),
        script=Markup(asset("figures.js")),
        title=title,
        told=[*facts, ("Made with", f"jaxdyn {installed_version()}, JAX {version('jax')}")],
        command=command,
        sections=sections[:DRAWN],
        not_drawn=_not_drawn(found, [one["name"] for one in sections[DRAWN:]]),
        fields=list(found.fields),
        columns=columns,
        more_columns=list(found.scalars)[COLUMNS:],
        rows=_rows(found, columns),
        cells=found.cells,
        cell_word="point" if found.listed else "cell",
        statuses={name: count for name, count in found.statuses().items() if name != "ok"},
        failed=failed[:FAILED],
        failed_cells=len(failed),
    )


def _seeds(seeds: Sequence[int]) -> str:
    return f"{', '.join(map(str, seeds[:20]))}{f' and {len(seeds) - 20} more' if len(seeds) > 20 else ''}"


def _rows(found: Table, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The first rows of the table."""
    numbers = [quantiles(found.ok(found.scalars[name])[:ROWS]) for name in columns]
    none = [found.without_number(found.scalars[name]) for name in columns]
    ok = (found.status == status.OK).sum(1)
    return [
        {
            "fields": [texts[cell] for texts in found.texts.values()],
            "ok": f"{ok[cell]} of {len(found.seeds)}",
            "numbers": [
                _number(column[cell], len(found.seeds), int(missing[cell]), int(ok[cell]))
                for column, missing in zip(numbers, none, strict=True)
            ],
        }
        for cell in range(min(found.cells, ROWS))
    ]


def _number(summary: Numbers, seeds: int, missing: int, ok: int) -> str:
    """A median with the central 90%, and how many of the ok runs have no number; a single run has only its value."""
    low, median, high = map(_written, summary.tolist())
    words = median if seeds == 1 or median == "–" else f"{median} ({low} to {high})"
    return f"{words}; {missing} of {ok} {'have' if missing > 1 else 'has'} no number" if missing else words


def _written(value: float) -> str:
    """A measured number; a dash for none."""
    return "–" if math.isnan(value) else f"{value:.4g}".replace("inf", "∞").replace("-∞", "−∞")


def _not_drawn(found: Table, names: Sequence[str]) -> list[str]:
    """Variables without a figure, in words."""
    return [*names, *(f"{name} ({', '.join(own) or 'one value'})" for name, own in found.others.items())]


# what is drawn


def _sections(found: Table) -> list[dict[str, Any]]:
    """A section for every variable: numbers first, then curves; prediction and measurement share one."""
    varied = _varied(found)
    sections = []
    for base, names in _pairs(found.scalars).items():
        figures = []
        if found.listed:
            figures.append(_render(draw_points, found, names, f"{base} over the points", POINTS_CAPTION))
        elif varied:
            figures.append(_render(draw_scalars, found, names, f"{base} over {varied[0]}", _caption(found, names, True)))
        if (found.listed or len(varied) >= MANY_FIELDS) and len(varied) > 1:
            figures.append(_render(draw_parallel, found, names, f"{base}: parallel coordinates", PARALLEL))
        gaps = _gaps(found.ok(found.scalars[name]) for name in names)
        sections.append({"name": base, "figures": [(figure, f"{caption}{gaps}") for figure, caption in figures]})
    for base, names in _pairs(found.curves).items():
        axis = found.curves[names[0]].axis
        caption = LINES_CAPTION if found.listed else _caption(found, names, False)
        caption += _gaps(found.ok(found.curves[name].values) for name in names)
        figure = _render(draw_curves, found, names, f"{base} along {axis}", caption)
        sections.append({"name": base, "figures": [figure]})
    return sections


def _gaps(drawn: Iterable[Numbers]) -> str:
    """What a caption says of numbers that have no place on an axis; empty without any."""
    if all(bool((np.isnan(values) | drawable(values)).all()) for values in drawn):
        return ""
    return f" Not drawn, a gap: what is infinite, or beyond {LARGEST:.0e}, which no axis holds.".replace("e+", "e")


BAND = "Median (line) and central 90% (band) of the seeds that are ok."
DASHED = "Dashed: median of what is predicted."
POINTS_CAPTION = (
    "One symbol per point: median of its ok seeds, with a bar for their central 90%. Crosses, if any: what is predicted."
)
LINES_CAPTION = "One line per point: median of its ok seeds."
PARALLEL = (
    "One line per cell or point, through its value on each axis, from the smallest (below) to the largest; the last axis, and the "
    "colour, is the median over seeds. Dashed red: no run is ok, or the median is infinite or too large to draw."
)


def _caption(found: Table, names: Sequence[str], scalar: bool) -> str:
    """The caption of a figure of a grid, which says what was left out."""
    varied = _varied(found)
    colours, panels = (varied[1:2], varied[2:]) if scalar else (varied[:1], varied[1:])
    parts = [BAND, *([DASHED] if len(names) > 1 and names[-1].startswith("predicted_") else [])]
    for name in colours:
        if (count := len(_distinct(found, name))) > COLOURED:
            parts.append(f"Colours: {COLOURED} of the {count} values of {name}.")
    if (count := len(_combinations(found, panels))) > PANELS:
        parts.append(f"Panels: {PANELS} of {count}.")
    return " ".join(parts)


def _pairs(variables: Mapping[str, Any]) -> dict[str, list[str]]:
    """Variables by what they are of, measured before predicted: ``{"w": ["measured_w", "predicted_w"]}``."""
    pairs: dict[str, list[str]] = {}
    for name in sorted(variables, key=lambda name: name.startswith("predicted_")):
        base = name.removeprefix("predicted_").removeprefix("measured_")
        base = base.partition(".")[0] if name.startswith("predicted_") else base
        pairs.setdefault(base, []).append(name)
    return pairs


def _render(
    draw: Callable[[Table, Sequence[str], Figure], None], found: Table, names: Sequence[str], label: str, caption: str
) -> tuple[Markup, str]:
    own = functools.partial(draw, found, names)
    return Markup(plotting.render(lambda _, fig: own(fig), xr.Dataset(), label)), caption


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _distinct(found: Table, name: str) -> list[Any]:
    """The different values of a field, numbers in rising order."""
    values = list(dict.fromkeys(found.fields[name]))
    return sorted(values) if all(map(_is_number, values)) else values


def _varied(found: Table) -> list[str]:
    """Fields with several values: numbers before words, those with most values first."""
    several = [name for name in found.fields if len(_distinct(found, name)) > 1]
    words = {name: not all(map(_is_number, found.fields[name])) for name in several}
    return sorted(several, key=lambda name: (words[name], -len(_distinct(found, name))))


def _some(values: Sequence[Any], most: int) -> list[Any]:
    """All values, or so many of them in even steps, with both ends."""
    if len(values) <= most:
        return list(values)
    return [values[i] for i in np.linspace(0, len(values) - 1, most).round().astype(int)]


def _labelled(found: Table) -> xr.DataArray:
    """One entry for each cell, labelled with its values of all fields that vary."""
    return xr.DataArray(np.arange(found.cells), dims="cell", coords={n: ("cell", found.fields[n]) for n in _varied(found)})


def _combinations(found: Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """The different values of some fields together."""
    columns = [found.fields[name] for name in names]
    rows = dict.fromkeys(zip(*columns, strict=True)) if names else {(): None}
    return [dict(zip(names, row, strict=True)) for row in rows]


def _titles(found: Table, combinations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The titles of the panels of some combinations of values."""
    return [found.words(_cells(found, at)[0], list(at)) for at in combinations]


def _cells(found: Table, at: Mapping[str, Any]) -> list[int]:
    """The cells with these values."""
    return [i for i in range(found.cells) if all(found.fields[name][i] == value for name, value in at.items())]


def _palette(values: Sequence[Any]) -> list[Any]:
    """A colour for each value: a ramp for numbers, different ones for words."""
    if all(map(_is_number, values)):
        return [RAMP(i / max(1, len(values) - 1)) for i in range(len(values))]
    return [CYCLE[i % len(CYCLE)] for i in range(len(values))]


def _wide(values: Sequence[Any] | Numbers, ratio: float) -> bool:
    """Whether numbers are positive and span so large a ratio that their axis is logarithmic."""
    numbers = np.asarray(values, float).ravel()
    numbers = numbers[drawable(numbers)]
    return bool(numbers.size and numbers.min() > 0 and numbers.max() >= ratio * numbers.min())


def _is_logarithmic(values: Sequence[Any]) -> bool:
    """Whether values of a field span a decade and lie more evenly by their logarithms than by themselves."""
    if not _wide(values, 10):
        return False
    numbers = np.asarray(values, float)
    own, logs = (abs((np.median(x) - x.min()) / (x.max() - x.min()) - 0.5) for x in (numbers, np.log(numbers)))
    return bool(logs < own)


def _panels(fig: Figure, titles: Sequence[str], sharex: bool = True) -> list[Axes]:
    """One panel for each title, in rows of three, four in rows of two."""
    across = 2 if len(titles) == 4 else min(3, len(titles))
    down = -(-len(titles) // across)
    fig.set_size_inches(9 if across > 1 else 6.5, (3.2 if across > 1 else 3.6) if down == 1 else 2.9 * down)
    axes = list(np.ravel(fig.subplots(down, across, sharex=sharex, sharey=True, squeeze=False)))
    for ax in axes[len(titles) :]:
        ax.set_axis_off()
    for ax, title in zip(axes, titles, strict=False):
        ax.set_title(textwrap.fill(_literal(title), 34))
        ax.tick_params(labelbottom=True)
    return axes[: len(titles)]


def _literal(words: str) -> str:
    """Words without mathematics."""
    return words.replace("$", r"\$")


def _series(found: Table, colour: str | None) -> list[tuple[dict[str, Any], Any, str]]:
    """What a panel draws: values of the field that is told apart by colour, the colour, and both in words."""
    if colour is None:
        return [({}, COLORS["measured"], "")]
    values = _some(_distinct(found, colour), COLOURED)
    labels = dict(zip(found.fields[colour], found.texts[colour], strict=True))
    return [({colour: v}, c, _literal(f"{colour} = {labels[v]}")) for v, c in zip(values, _palette(values), strict=True)]


def _summary(
    ax: Axes, x: Sequence[Any] | Numbers, runs: Any, names: Sequence[str], which: int, own: str, color: Any, **line: Any
) -> None:
    """One variable of one colour: a band of its runs, a dashed line where it is predicted. The first panel has the legend.

    Under the pointer every line has its name, which a legend leaves out where a colour says it for both variables.
    """
    first, several, name = ax is ax.figure.axes[0], len(names) > 1, names[which]
    if several and name.startswith("predicted_"):
        label = "" if own else name
        drawn = ax.plot(x, finite(quantiles(runs, 0)[:, 1]), "--", color=color if own else COLORS["theory"])
    else:
        label = own or (name if several else "")
        plotting.band(ax, x, runs, "", color, **line)
        drawn = [ax.lines[-1]]
    if first and label:
        drawn[0].set_label(label)
    plotting.named(drawn, ", ".join(filter(None, (name if several else "", own))))


def draw_scalars(found: Table, names: Sequence[str], fig: Figure) -> None:
    """Numbers over the field with most values: colours by the second field, panels by all others."""
    x, *rest = _varied(found)
    combinations = _some(_combinations(found, rest[1:]), PANELS)
    positions = _distinct(found, x)
    numeric = all(map(_is_number, positions))
    for ax, at in zip(_panels(fig, _titles(found, combinations)), combinations, strict=True):
        for own, color, words in _series(found, rest[0] if rest else None):
            cells = sorted(_cells(found, at | own), key=lambda i: positions.index(found.fields[x][i]))
            places = [found.fields[x][i] if numeric else positions.index(found.fields[x][i]) for i in cells]
            for i, name in enumerate(names):
                _summary(ax, places, found.ok(found.scalars[name])[cells].T, names, i, words, color, marker="o")
        if not numeric:
            ax.set_xticks(range(len(positions)), [_literal(str(value)) for value in positions])
        elif _is_logarithmic(positions):
            ax.set_xscale("log")
        ax.set_xlabel(x)
    _finish(found, names, fig)


def _finish(found: Table, names: Sequence[str], fig: Figure, values: Any = None) -> None:
    """The label of the y axis, which is logarithmic for values that span two decades."""
    values = np.concatenate([found.ok(found.scalars[name]).ravel() for name in names]) if values is None else values
    for ax in fig.axes:
        if ax.axison and ax.get_label() != "<colorbar>" and _wide(values, 100):
            ax.set_yscale("log")
    fig.axes[0].set_ylabel(names[0] if len(names) == 1 else next(iter(_pairs(dict.fromkeys(names)))))


def draw_curves(found: Table, names: Sequence[str], fig: Figure) -> None:
    """Variables along their axis: colours by the field with most values, panels by all others; a line for each point of a list."""
    curves = {name: found.curves[name] for name in names}
    first = curves[names[0]]
    varied = _varied(found)
    medians = [finite(quantiles(found.ok(curve.values))[..., 1]) for curve in curves.values()]
    if found.listed and varied:
        (ax,) = _panels(fig, [""])
        cells = _some(range(found.cells), LINES)
        plotting.lines(
            ax, first.at, medians[0][cells], [found.fields[varied[0]][i] for i in cells], varied[0], alpha=0.7, linewidth=1
        )
        plotting.of_runs([*ax.lines], _labelled(found), cells)
        ax.set_xlabel(first.axis)
        _finish(found, names[:1], fig, medians[0])
        return
    combinations = _some(_combinations(found, varied[1:]), PANELS)
    for ax, at in zip(_panels(fig, _titles(found, combinations)), combinations, strict=True):
        for own, color, words in _series(found, varied[0] if varied else None):
            (cell,) = _cells(found, at | own)
            for i, curve in enumerate(curves.values()):
                _summary(ax, curve.at, found.ok(curve.values)[cell], names, i, words, color)
        ax.set_xlabel(first.axis)
    _finish(found, names, fig, np.concatenate([median.ravel() for median in medians]))


def draw_points(found: Table, names: Sequence[str], fig: Figure) -> None:
    """Numbers against each swept field, one symbol per point."""
    fields = _varied(found)[:PANELS] or list(found.fields)[:1]
    axes = _panels(fig, [""] * len(fields), sharex=False)
    for ax, field in zip(axes, fields, strict=True):
        values = _distinct(found, field)
        numeric = all(map(_is_number, values))
        x = [v if numeric else values.index(v) for v in found.fields[field]]
        for name, mark, color in zip(names, "oxx", ("measured", "theory", "third"), strict=False):
            low, middle, high = finite(np.moveaxis(quantiles(found.ok(found.scalars[name])), -1, 0))
            symbols = ax.plot(x, middle, mark, color=COLORS[color], alpha=0.7, label=name if len(names) > 1 else None)
            plotting.of_runs(symbols, _labelled(found))
            if len(found.seeds) > 1 and mark == "o":
                ax.vlines(x, low, high, color=COLORS[color], alpha=0.35, linewidth=1)
        if not numeric:
            ax.set_xticks(range(len(values)), [_literal(str(value)) for value in values])
        elif _is_logarithmic(values):
            ax.set_xscale("log")
        ax.set_xlabel(field)
    _finish(found, names, fig)


def draw_parallel(found: Table, names: Sequence[str], fig: Figure) -> None:
    """Parallel coordinates: the swept fields and, as the last axis and the colour, the median of the first number."""
    name = names[0]
    outcome = quantiles(found.ok(found.scalars[name]))[:, 1]
    cells = _some(range(found.cells), LINES)
    axes = {field: found.fields[field] for field in _varied(found)[: PANELS - 1]}
    heights = [_heights(values) for values in axes.values()]
    last = _heights(outcome.tolist())
    fig.set_size_inches(9, 3.6)
    ax = fig.subplots()
    for i in sorted(cells, key=lambda i: (np.isfinite(last[i]), last[i])):
        row = [column[i] for column in heights]
        if np.isfinite(last[i]):
            line = ax.plot(range(len(row) + 1), [*row, last[i]], color=RAMP(last[i]), alpha=0.6, linewidth=1)
        else:
            line = ax.plot(range(len(row)), row, "--", color=COLORS["failed"], alpha=0.6, linewidth=1)
        plotting.of_runs(line, _labelled(found), [i])
    for i, (values, words) in enumerate([*((own, field_texts) for own in axes.values()), (outcome.tolist(), texts)]):
        ax.axvline(i, color=COLORS["control"], linewidth=0.8, zorder=0)
        low, high = _ends(values, words)
        ax.text(i, -0.04, low, ha="center", va="top", fontsize="small")
        ax.text(i, 1.04, high, ha="center", va="bottom", fontsize="small")
    ax.set_xticks(range(len(axes) + 1), [*axes, name])
    ax.tick_params(axis="x", length=0, pad=14)
    ax.set(yticks=[], ylim=(-0.02, 1.02), xlim=(-0.3, len(axes) + 0.3))
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _heights(values: Sequence[Any]) -> Numbers:
    """Values between 0 and 1 on an axis, by their logarithms if they lie evenly so; words in the order in which they come."""
    if not all(map(_is_number, values)):
        order = list(dict.fromkeys(values))
        values = [order.index(value) for value in values]
    numbers = finite(np.asarray(values, float))
    numbers = np.log(numbers) if _is_logarithmic(numbers[np.isfinite(numbers)].tolist()) else numbers
    known = numbers[np.isfinite(numbers)]
    if not known.size or known.max() == known.min():
        return numbers * 0 + 0.5
    heights: Numbers = (numbers - known.min()) / (known.max() - known.min())
    return heights


def _ends(values: Sequence[Any], words: Callable[[Sequence[Any]], list[str]]) -> tuple[str, str]:
    """The ends of an axis, which ``words`` writes where they are numbers."""
    if not all(map(_is_number, values)):
        order = list(dict.fromkeys(values))
        return str(order[0]), str(order[-1])
    known = [value for value in values if np.isfinite(value)]
    low, high = words([min(known), max(known)]) if known else ("", "")
    return low, high
