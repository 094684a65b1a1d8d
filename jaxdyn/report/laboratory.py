"""The page of a study of the laboratory: laws by variants as one picture, then each law along training, measured next to predicted.

It has the report's style and no script; the figure of a law shows what it measures along the direction in which it moves. Then
comes what instruments read, along training by variant.
"""

from __future__ import annotations

import concurrent.futures as cf
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.colors
import numpy as np
import xarray as xr
from markupsafe import Markup

from jaxdyn import plotting
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.runs.sweep import opened
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError
from jaxdyn.instruments import registry
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Law
from jaxdyn.laboratory import lab as studies
from jaxdyn.laboratory.results import (
    Cell,
    Laboratory,
    alike,
    error_along,
    own_dims,
    reading_along,
    shown_readings,
    sides_of,
    until,
)
from jaxdyn.laboratory.setting import Bench
from jaxdyn.laboratory.trial import trial
from jaxdyn.plotting import COLORS, CYCLE
from jaxdyn.report.page import POLICY, asset, environment
from jaxdyn.version import installed_version
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FILES", "MARKS", "course", "draw_errors", "draw_map", "draw_readings", "lab", "page", "to_json", "with_map"]

FILES = ("index.html", "lab.json")
MARKS = {"not asked": "–", "upheld": "", "inconclusive": "?", "toothless": "△", "refuted": "×"}  # the worst last
ENDS = "<!-- map -->", "<!-- /map -->"
DRAWN = 6  # variants whose curves one panel shows
WRAP, TITLE = 34, 26  # letters of a line of a label of a panel, and of a panel's title


def lab(
    watch: Sequence[str] | str,
    variants: Any = None,
    *,
    seeds: int | Sequence[int] = 4,
    out: str | Path | None = None,
    cluster: cf.Executor | None = None,
    progress: Progress | bool | None = None,
    **fields: Any,
) -> Laboratory:
    """Train variants of the transformer, read laws and instruments along the way, judge each law, and write a page.

    ``jd.lab(["balance", "sinks"], attention=["softmax", "zero_sink"], norm=["none", "rms"], data="trees", lr=[0.03, 0.1])``. The
    page is ``index.html`` in the folder ``out``, if given. Arguments and errors as for :func:`jaxdyn.laboratory.lab.study`.
    """
    if out is None:
        return studies.study(watch, variants, seeds=seeds, cluster=cluster, progress=progress, **fields)
    studies.order(watch, variants, **fields)  # what is not allowed makes no folder
    with opened(out, trial) as folder:  # until the page is written, so that numbers and page are of one study
        found = studies.study(watch, variants, seeds=seeds, out=folder, cluster=cluster, progress=progress, **fields)
        files = page(found), json.dumps(to_json(found), indent=1)
        (folder / FILES[0]).unlink(missing_ok=True)  # an interruption leaves no page of another study next to new numbers
        for name, content in reversed(list(zip(FILES, files, strict=True))):
            atomic_write(folder / name, content)
    return found


def to_json(found: Laboratory) -> dict[str, Any]:
    """Cells, variants and fields in JSON types."""
    cells = [vars(cell) | {"numbers": dict(cell.numbers)} for cell in found.cells]
    laws = [{"name": law.name, "title": law.title, "bound": law.bound, "source": law.source} for law in found.laws]
    read = [{"name": one.name, "title": one.title, "source": one.source} for one in found.instruments]
    said = {
        "laws": laws,
        "instruments": read,
        "variants": found.variants,
        "fields": found.fields,
        "seeds": _seeds(found),
        "alike": found.alike,
    }
    result: dict[str, Any] = finite(json.loads(json.dumps(said | {"cells": cells})))
    return result


def with_map(page: str, found: Mapping[str, Any]) -> str:
    """A document with the table of a map, as :func:`to_json` gives it, between its marks: variants by laws.

    Raises:
        UsageError: the document lacks the marks.
    """
    before, begin, rest = page.partition(ENDS[0])
    _, end, after = rest.partition(ENDS[1])
    if not (begin and end):
        raise UsageError(f"the page lacks {ENDS[0]} and {ENDS[1]}")
    laws = [law["name"] for law in found["laws"]]
    cells = {(cell["law"], cell["variant"]): cell for cell in found["cells"]}
    lines = [f"| | {' | '.join(laws)} |", f"|---|{'---|' * len(laws)}"]
    lines += [f"| {name} | {' | '.join(_mark(cells[law, name]) for law in laws)} |" for name in found["variants"]]
    return "\n".join([before + ENDS[0], *lines, ENDS[1] + after])


def _mark(cell: Mapping[str, Any]) -> str:
    """A cell in a table: its verdict as a mark, and its error."""
    if math.isnan(_error(cell)):
        return MARKS[cell["verdict"]]
    if math.isinf(_error(cell)):
        return f"{MARKS[cell['verdict']]} ∞"
    return f"{MARKS[cell['verdict']] or '✓'} {cell['error']:.2g}"


def page(found: Laboratory) -> str:
    """The page as HTML."""
    facts = [(name, _shared(found, name, value)) for name, value in found.fields.items()]
    facts += [("Runs", f"{_runs(found):,}"), ("Seeds", _seeds(found))]
    facts += [("Note", alike(names)) for names in found.alike]
    facts.append(("Made with", f"jaxdyn {installed_version()}, JAX {version('jax')}"))
    names = ", ".join([*(law.name for law in found.laws), *(one.name for one in found.instruments)])
    by_law = plotting.render(lambda _, fig: draw_map(to_json(found), fig), xr.Dataset(), "Laws by variants") if found.laws else ""
    template = environment().get_template("laboratory.html")
    return template.render(
        policy=POLICY,
        style=Markup(asset("report.css")),
        script=Markup(asset("figures.js")),
        title=f"{names}: {plural(len(found.variants), 'variant')}" if len(found.variants) > 1 else names,
        told=facts,
        meanings=meanings(Bench),
        map=Markup(by_law),
        sections=[_section(found, law) for law in found.laws] + [_readings(found, one) for one in found.instruments],
    )


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _shared(found: Laboratory, name: str, value: Any) -> str:
    """A field that the variants share, with the values of those that have their own."""
    own = [f"{variant}: {_text(fields[name])}" for variant, fields in found.variants.items() if name in fields]
    return "; ".join([*([_text(value)] if len(own) < len(found.variants) else []), *own])


def _seeds(found: Laboratory) -> str:
    """The seeds of all runs, as their Datasets name them; empty where there are none."""
    return next((str(ds.attrs.get("seeds", "")) for ds in found.data.values()), "")


def _runs(found: Laboratory) -> int:
    return sum(ds.status.size for ds in found.data.values())


def _section(found: Laboratory, law: Law) -> dict[str, Any]:
    """The section of one law."""
    cells, drawn, more = _asked(found, law.name)
    figures = []
    if drawn:
        figures.append((_render(lambda fig: course(found, law, drawn, fig), law.title), COURSE + more))
        figures.append((_render(lambda fig: draw_errors(found, law, drawn, fig), f"{law.title}: error"), ERRORS + more))
    own = registry.laws().get(law.name) is not law
    return {"law": law, "figures": figures, "rows": [_row(cell) for cell in cells], "measured": False, "own": own}


def _readings(found: Laboratory, one: Instrument) -> dict[str, Any]:
    """The section of one instrument."""
    cells, drawn, more = _asked(found, one.name)
    figures = [(_render(lambda fig: draw_readings(found, one, drawn, fig), one.title), READINGS + more)] if drawn else []
    own = one.name in registry.laws() or registry.instruments().get(one.name) is not one  # its name is no --watch
    return {"law": one, "figures": figures, "rows": [_row(cell) for cell in cells], "measured": True, "own": own}


def _asked(found: Laboratory, name: str) -> tuple[list[Cell], list[str], str]:
    """The cells of a law or an instrument, the variants of it that are drawn, and which these are if they are not all."""
    cells = [cell for cell in found.cells if cell.law == name]
    asked = [variant for variant in found.data if any(cell.variant == variant and cell.verdict != "not asked" for cell in cells)]
    return cells, asked[:DRAWN], f" The first {DRAWN} of {plural(len(asked), 'variant')}." if len(asked) > DRAWN else ""


def _row(cell: Cell) -> dict[str, Any]:
    """A cell for the page."""
    numbers = "".join(f", {name} = {value:g}" for name, value in cell.numbers.items())
    return {"variant": cell.variant + numbers, "cell": cell, "until": until(cell)}


COURSE = (
    "Along training: what was measured (solid) and what theory predicts (dashed) at the first of the swept numbers, both along the "
    "direction in which the measured quantity has moved at the end, in units of this movement; median and central 90% of the runs."
)
ERRORS = "The error until each step, mean over seeds with its 95% interval; dotted: the largest error at which the law holds."

READINGS = (
    "What was measured along training, of the first sequences of the batch that is read, at the first of the swept numbers: mean "
    "over layers and seeds, with its 95% interval over seeds."
)


def _render(draw: Callable[[Figure], None], label: str) -> Markup:
    return Markup(plotting.render(lambda _, fig: draw(fig), xr.Dataset(), label))


def _first(ds: xr.Dataset) -> xr.Dataset:
    """The runs at the first of all swept numbers."""
    return ds.isel({dim: 0 for dim in ds.status.dims if dim != "seed"})


def moved(law: Law, ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Predicted and measured movement since the start along the measured one's direction, in units of the whole."""
    predicted, measured, speaks = sides_of(law, ds)
    dims = own_dims(law, ds)
    start = measured.isel(time=0, drop=True)
    way = measured.isel(time=-1, drop=True) - start
    length = (way**2).sum(dims, min_count=1) if dims else way**2
    return tuple(
        (((side - start) * way).sum(dims, min_count=1) if dims else (side - start) * way).where(speaks) / length.where(length > 0)
        for side in (predicted, measured)
    )  # type: ignore[return-value]


def course(found: Laboratory, law: Law, names: Sequence[str], fig: Figure) -> None:
    """Measured and predicted along training, a panel for each variant."""
    axes = np.atleast_1d(fig.subplots(1, len(names), sharey=True)) if len(names) <= 3 else np.ravel(fig.subplots(2, 3, sharey=True))
    fig.set_size_inches(9, 3 if len(names) <= 3 else 5)
    for ax, name in zip(axes, names, strict=False):
        ds = _first(found.data[name])
        predicted, measured = moved(law, ds)
        plotting.band(ax, ds.time.values, measured.transpose("seed", "time").values, "measured", "measured")
        plotting.band(ax, ds.time.values, predicted.transpose("seed", "time").values, "predicted", "theory", linestyle="--")
        ax.set(title=textwrap.fill(_literal(name), TITLE), xlabel="step")
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    axes[0].set_ylabel("movement")


def draw_errors(found: Laboratory, law: Law, names: Sequence[str], fig: Figure) -> None:
    """The error until each step, by variant."""
    ax = fig.subplots()
    for name, color in zip(names, CYCLE, strict=False):
        ds = _first(found.data[name])
        mean, low, high = (x.where(np.isfinite(x)) for x in error_along(law, ds))
        ax.plot(ds.time, mean, color=color, label=_literal(name))
        ax.fill_between(ds.time, low, high, color=color, alpha=0.22, linewidth=0)
    ax.axhline(law.bound, linestyle=":", color=COLORS["theory"])
    ax.set(xlabel="step", ylabel="error", ylim=(0, None))


def draw_readings(found: Laboratory, one: Instrument, names: Sequence[str], fig: Figure) -> None:
    """What an instrument reads along training, by variant: a panel for each reading."""
    labels = [label for label in one.dims if any(label in shown_readings(one, found.data[name]) for name in names)]
    axes = np.ravel(fig.subplots(1, max(len(labels), 1)))
    fig.set_size_inches(9 if len(labels) > 1 else 6, 3)
    for ax, label in zip(axes, labels, strict=False):
        for name, color in zip(names, CYCLE, strict=False):
            ds = _first(found.data[name])
            if label not in shown_readings(one, ds):
                continue
            mean, low, high = reading_along(one, label, ds)
            ax.plot(ds.time, mean, color=color, label=_literal(name))
            ax.fill_between(ds.time, low, high, color=color, alpha=0.22, linewidth=0)
        ax.set(xlabel="step", ylabel="\n".join(textwrap.wrap(label, WRAP, break_long_words=False)))


def _badness(cell: Mapping[str, Any]) -> tuple[int, float]:
    """Of two cells that with the worse verdict is worse; of equal verdicts that with the larger error."""
    error = _error(cell)
    return list(MARKS).index(cell["verdict"]), -1.0 if math.isnan(error) else error


def _error(cell: Mapping[str, Any]) -> float:
    """A cell's error; JSON has none where it is infinite, which only what is refuted can be, or where there is none."""
    if cell["error"] is None:
        return math.inf if cell["verdict"] == "refuted" else math.nan
    return float(cell["error"])


def _literal(name: str) -> str:
    """A variant's name as matplotlib draws it as it is: without mathematics, and not left out of legends."""
    plain = name.replace("$", r"\$")
    return rf"$\_${plain[1:]}" if plain.startswith("_") else plain


def draw_map(found: Mapping[str, Any], fig: Figure) -> None:
    """Laws by variants, as :func:`to_json` gives them: colour by error over the bound, marks where a law does not hold."""
    laws, names = [law["name"] for law in found["laws"]], list(found["variants"])
    bounds = {law["name"]: law["bound"] for law in found["laws"]}
    over, marks = np.full((len(laws), len(names)), np.nan), [["" for _ in names] for _ in laws]
    for i, law in enumerate(laws):
        for j, name in enumerate(names):
            cells = [cell for cell in found["cells"] if cell["law"] == law and cell["variant"] == name]
            worst = max(cells, key=_badness)
            over[i, j] = _error(worst) / bounds[law]
            marks[i][j] = MARKS[worst["verdict"]]
    labels = [_literal(name).replace(", ", "\n") for name in names]
    longest = max(len(line) for label in labels for line in label.splitlines())
    fig.set_size_inches(9, 0.6 + 0.06 * longest + 0.4 * len(laws))
    ax = fig.subplots()
    norm = matplotlib.colors.LogNorm(0.1, 10)
    mesh = ax.pcolormesh(np.clip(over, 0.1, 10), norm=norm, cmap="RdYlBu_r", edgecolors="white", linewidth=1)
    for i, row in enumerate(marks):
        for j, mark in enumerate(row):
            ax.text(j + 0.5, i + 0.5, mark, ha="center", va="center")
    ax.grid(False)
    ax.set_xticks(np.arange(len(names)) + 0.5, labels, rotation=35, ha="right", fontsize="small")
    ax.set_yticks(np.arange(len(laws)) + 0.5, laws)
    ax.invert_yaxis()
    fig.colorbar(mesh, ax=ax, label="error / bound", aspect=10)
