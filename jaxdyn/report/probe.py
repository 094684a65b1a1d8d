"""The page of a probe: one HTML file with a figure, the prediction, published values and the numbers of every instrument.

It has the report's style and no script: figures are included uncompressed. For a series of checkpoints, every instrument is drawn
along training, followed by the figure of the last checkpoint that the instrument has data of.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from markupsafe import Markup

from jaxdyn import plotting, stats
from jaxdyn.engine.verification import origin
from jaxdyn.instruments import Number, registry
from jaxdyn.models import probe as models
from jaxdyn.models.probe import Checkpoint, Probe
from jaxdyn.models.series import short
from jaxdyn.plotting import COLORS, CYCLE
from jaxdyn.report import formatting
from jaxdyn.report.page import POLICY, asset, environment
from jaxdyn.version import installed_version
from jaxdyn.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PAGE", "along", "changes", "page", "probe", "traces", "caption_along_training"]

PAGE = "index.html"
MADE_FROM = re.compile(r'<meta name="made-from" content="([^"]*)">')
INSTRUMENTS = "the code of the instruments"
AXIS = "axis"  # attribute of the steps of a series: what they are
WRAP = 30  # characters per line of an axis label


def probe(
    model: Any,
    text: Any = None,
    tokens: int = models.TOKENS,
    only: Sequence[str] | str | None = None,
    out: str | Path | None = None,
    *,
    length: int = models.LENGTH,
    dtype: str | None = None,
    steps: Sequence[int] | str | None = None,
    say: Callable[[str], None] | None = None,
) -> Probe:
    """Apply instruments to your own model or a series of checkpoints (:func:`jaxdyn.models.probe.probe`), and write a page.

    The page is ``index.html`` in the folder ``out``, if given. Arguments and errors as for :func:`jaxdyn.models.probe.probe`.
    """
    drawn = lambda result: {PAGE: page(result)}  # noqa: E731
    return models.probe(model, text, tokens, only, out, length=length, dtype=dtype, steps=steps, say=say, pages=drawn)


def page(probe: Probe) -> str:
    """The page as HTML."""
    last, series = probe.checkpoints[-1], len(probe.checkpoints) > 1
    sections = [_section(probe, number) for number in range(len(last.outcomes))]
    title = f"{len(probe.checkpoints)} checkpoints, up to {last.label}" if series else last.label
    steps = [one.step for one in probe.checkpoints if one.step is not None]
    facts = [
        ("Text", short(probe.text)),
        ("Tokens", f"up to {probe.tokens:,}, in pieces of {probe.length}"),
        ("Steps", f"{steps[0]:,} to {steps[-1]:,}" if len(steps) > 1 else ""),
        ("Made with", f"jaxdyn {installed_version()}, JAX {version('jax')}"),
        ("Wall time", formatting.duration(sum(o.seconds for one in probe.checkpoints for o in one.outcomes))),
    ]
    template = environment().get_template("probe.html")
    style, script = Markup(asset("report.css")), Markup(asset("figures.js"))
    return template.render(
        policy=POLICY,
        style=style,
        script=script,
        title=title,
        told=[f for f in facts if f[1]],
        lines=_pairs(last.lines),
        described=f"The last checkpoint, {last.label}" if series else "The model",
        left_out=[f"{one.label}: {one.left_out}." for one in probe.checkpoints if one.left_out],
        sections=sections,
        made_from=json.dumps(origin.made_from((), "", _code())),
    )


def _code() -> str:
    """Hash of the code of all instruments and of the page."""
    homes = {home.__name__ for home in registry.homes().values()}
    return origin.modules_hash((models.__name__, __name__, *homes))


def changes(html: str) -> origin.Changes | None:
    """What has changed since a page was made: the code of the instruments, or the versions; None for any other page."""
    found = MADE_FROM.search(html)
    if found is None:
        return None
    changed = origin.what_changed(json.loads(unescape(found[1])), (), "", _code())
    return changed._replace(reasons=tuple(INSTRUMENTS for _ in changed.reasons))


def _pairs(lines: tuple[str, ...]) -> list[tuple[str, str]]:
    """The lines of a summary as pairs of a name and a text."""
    return [(name, rest.strip()) for name, rest in ((line[:10].strip(), line[10:]) for line in lines)]


def _section(probe: Probe, number: int) -> dict[str, Any]:
    """The section of one instrument: of the last checkpoint that it has data of, and along training if it has data of several."""
    shown = probe.latest(number)
    one, data = shown.outcomes[number].instrument, shown.outcomes[number].data
    section: dict[str, Any] = {"name": one.name, "title": one.title, "theory": one.theory, "source": one.source}
    section |= {"missing": _missing(probe, number), "read": _reads(probe, number), "numbers": [], "figure": None, "table": None}
    section |= {"along": None, "shown": ""}
    if data is None:
        return section
    section["figure"] = {"svg": Markup(plotting.render(lambda ds, fig: one.plot(ds, fig), data, one.title)), "caption": one.caption}
    section["numbers"] = [_row(n) for n in shown.outcomes[number].numbers()]
    section["table"] = None if one.table is None else one.table(data)
    if len(probe.checkpoints) > 1:
        last = shown is probe.checkpoints[-1]
        section["shown"] = f"The last checkpoint{'' if last else ' with data'}: {shown.label}"
    if len(_measured(probe, number)) > 1:
        drawn = traces(probe, number)
        svg = plotting.render(lambda _, fig: along(drawn, fig), xr.Dataset(), f"{one.title} along training")
        section["along"] = {"svg": Markup(svg), "caption": caption_along_training(drawn)}
    return section


def _measured(probe: Probe, number: int) -> list[Checkpoint]:
    """The checkpoints that an instrument has data of."""
    return [one for one in probe.checkpoints if one.outcomes[number].data is not None]


def _missing(probe: Probe, number: int) -> list[str]:
    """Which checkpoints an instrument has no data of, and why; of a single model only why."""
    reasons: dict[str, list[str]] = {}
    for one in probe.checkpoints:
        if one.outcomes[number].data is None:
            reasons.setdefault(one.outcomes[number].skipped, []).append(one.label)
    if len(probe.checkpoints) == 1:
        return list(reasons)
    return [f"Left out here: {', '.join(labels)}. {reason}" for reason, labels in reasons.items()]


def _reads(probe: Probe, number: int) -> str:
    """What an instrument has read of the text, over all checkpoints that it has data of."""
    found = [one.outcomes[number].read for one in _measured(probe, number)]
    if not found:
        return ""
    read = [one for one in found if one is not None]
    if not read:
        return "Reads no text."
    counts, tokens = [pieces for pieces, _ in read], read[0][1]
    pieces = plural(counts[0], "piece") if len(set(counts)) == 1 else f"{min(counts)} to {plural(max(counts), 'piece')}"
    each = plural(tokens, "token")
    words = f"Read: {pieces} of {each}." if tokens == probe.length else f"Read: {pieces}, the first {each} each."
    return words if max(counts) > 1 else f"{words} A single piece has no interval, and no band."


def caption_along_training(drawn: Mapping[str, xr.DataArray]) -> str:
    """The caption of a figure along training: what its lines and bands are, panel by panel, and whether lines are broken."""
    panels = []
    for label, values in drawn.items():
        other = _lines_of(values)
        words = ["mean over pieces of the text"] if "piece" in values.dims else []
        words += [f"one line per {other}"] if other else []
        words += ["band: 95% interval over pieces"] if _has_band(values) else []
        panels.append(f"{label}: {', '.join(words) or 'one number per checkpoint'}.")
    broken = any(bool(_mean(values).isnull().any()) for values in drawn.values())
    end = " Lines are broken where a checkpoint has no value." if broken else ""
    return f"Across: {next(iter(drawn.values())).step.attrs[AXIS]}. {' '.join(panels)}{end}"


def _mean(values: xr.DataArray) -> xr.DataArray:
    """The mean over those pieces that have a number, if there are pieces."""
    return values.mean("piece") if "piece" in values.dims else values


def _lines_of(values: xr.DataArray) -> str:
    """The dimension that has a line for each of its values; none: empty."""
    return next((str(dim) for dim in values.dims if dim not in ("step", "piece")), "")


def _has_band(values: xr.DataArray) -> bool:
    """Whether a trace is drawn with its interval over pieces."""
    return not _lines_of(values) and values.sizes.get("piece", 1) > 1


def _row(n: Number) -> dict[str, Any]:
    """A number for the page."""
    inside = np.isfinite(n.low) and np.isfinite(n.high)
    interval = Markup("{} to {}").format(formatting.number(n.low), formatting.number(n.high)) if inside else ""
    return {"name": n.name, "value": n.value, "interval": interval, "expected": n.expected, "says": n.says}


def traces(probe: Probe, number: int) -> dict[str, xr.DataArray]:
    """The quantities that an instrument shows along training, with the dimension ``step``; NaN at checkpoints without data.

    Where a series has no steps, ``step`` counts its checkpoints from 1.
    """
    by_label: dict[str, list[xr.DataArray]] = {}
    steps = [place if one.step is None else one.step for place, one in enumerate(probe.checkpoints, 1)]
    axis = "place in the list of checkpoints" if probe.checkpoints[0].step is None else "training step"
    there = []
    for step, checkpoint in zip(steps, probe.checkpoints, strict=True):
        outcome = checkpoint.outcomes[number]
        if outcome.data is None:
            continue
        there.append(step)
        for label, values in outcome.instrument.traces(outcome.data).items():
            by_label.setdefault(label, []).append(values.astype(float))
    joined = {label: xr.concat(values, xr.Variable("step", there), join="outer") for label, values in by_label.items()}
    return {label: values.reindex(step=steps).assign_coords(step=("step", steps, {AXIS: axis})) for label, values in joined.items()}


def along(drawn: Mapping[str, xr.DataArray], fig: Figure) -> None:
    """Draw one panel per trace: lines by layer or name, or one line with its interval; broken where there is no value."""
    panels = np.ravel(fig.subplots(1, max(len(drawn), 1)))
    if len(drawn) > 2:
        fig.set_size_inches(9, 3.2)
    for ax, (label, values) in zip(panels, drawn.items(), strict=False):
        _panel(ax, values)
        ax.set(xlabel=values.step.attrs[AXIS], ylabel="\n".join(textwrap.wrap(label, WRAP)))
        ax.ticklabel_format(axis="y", useOffset=False)
        bottom, top = float(values.min()), float(values.max())
        if 0 <= bottom <= top / 2:
            ax.set_ylim(0, None if top else 1)
        steps = values.step.values
        if values.step.attrs[AXIS] != "training step":
            ax.set_xticks(steps)
            continue
        least = max(float(steps[steps > 0].min()), 1.0) if (steps > 0).any() else np.inf
        if steps.max() > 20 * least:
            ax.set_xscale("symlog", linthresh=least)
            ax.set_xlim(steps.min() - 0.2 * least, 1.2 * steps.max())  # default margins would show negative steps


def _panel(ax: Axes, values: xr.DataArray) -> None:
    other, steps, mean = _lines_of(values), values.step.values, _mean(values)
    if not other:
        if _has_band(values):
            _interval(ax, values)
        ax.plot(steps, mean.transpose("step"), "o-", color=COLORS["measured"])
        return
    names = values[other].values if other in values.coords else np.arange(values.sizes[other])
    rows = mean.transpose(other, "step").values
    numeric = names.dtype.kind in "iuf"
    if numeric and other == "layer":
        plotting.lines(ax, steps, rows, color_by=names.tolist(), name="layer", linewidth=1.2, marker="o", markersize=3)
        return
    colors = [COLORS[name] for name in values.attrs["colors"]] if "colors" in values.attrs else CYCLE
    for name, row, color in zip(names, rows, itertools.cycle(colors), strict=False):
        ax.plot(steps, row, "o-", label=f"{other} {name:g}" if numeric else str(name), color=color, markersize=3)


def _interval(ax: Axes, values: xr.DataArray) -> None:
    """The interval over pieces as a band; as a bar at a checkpoint whose neighbours have none, where a band has no width."""
    _, low, high = stats.mean_interval(values, "piece")
    steps, there = values.step.values, np.isfinite(low.values)
    ax.fill_between(steps, low, high, color=COLORS["measured"], alpha=0.22, linewidth=0)
    alone = there & ~np.r_[False, there[:-1]] & ~np.r_[there[1:], False]
    ax.vlines(steps[alone], low[alone], high[alone], color=COLORS["measured"], alpha=0.4, linewidth=3)
