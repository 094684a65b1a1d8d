"""The page of a probe: one HTML file with a figure, the prediction, published values and the numbers of every instrument.

It has the report's style and no script: figures are included uncompressed. For a series of checkpoints, every instrument is drawn
along training, followed by the figure of the last checkpoint.
"""

from __future__ import annotations

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
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification import origin
from jaxdyn.models import probe as models
from jaxdyn.models.instruments import Number
from jaxdyn.models.probe import Outcome, Probe
from jaxdyn.plotting import COLORS, CYCLE
from jaxdyn.report import formatting
from jaxdyn.report.page import POLICY, asset, environment
from jaxdyn.version import installed_version

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PAGE", "along", "changes", "page", "probe", "traces"]

PAGE = "index.html"
MADE_FROM = re.compile(r'<meta name="made-from" content="([^"]*)">')
INSTRUMENTS = "the code of the instruments"
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
    result = models.probe(model, text, tokens, only, out, length=length, dtype=dtype, steps=steps, say=say)
    if out is not None:
        atomic_write(from_home(out) / PAGE, page(result))
    return result


def page(probe: Probe) -> str:
    """The page as HTML."""
    last, series = probe.checkpoints[-1], len(probe.checkpoints) > 1
    sections = [_section(probe, number, outcome) for number, outcome in enumerate(last.outcomes)]
    title = f"{len(probe.checkpoints)} checkpoints, up to {_short(last.name)}" if series else _short(last.name)
    facts = [
        ("Text", Path(probe.text).name),
        ("Tokens", f"{probe.tokens:,} in pieces of {probe.length}"),
        ("Steps", f"{probe.checkpoints[0].step:,} to {last.step:,}" if series else ""),
        ("Made with", f"jaxdyn {installed_version()}, JAX {version('jax')}"),
        ("Wall time", formatting.duration(sum(o.seconds for one in probe.checkpoints for o in one.outcomes))),
    ]
    template = environment().get_template("probe.html")
    style = Markup(asset("report.css"))
    return template.render(
        policy=POLICY,
        style=style,
        title=title,
        facts=[f for f in facts if f[1]],
        lines=_pairs(last.lines),
        left_out=[f"{_short(one.name)}: {one.left_out}." for one in probe.checkpoints if one.left_out],
        sections=sections,
        made_from=json.dumps(origin.made_from((), "", _code())),
    )


def _code() -> str:
    """Hash of the code of all instruments and of the page."""
    return origin.modules_hash((models.__name__, __name__))


def changes(html: str) -> origin.Changes | None:
    """What has changed since a page was made: the code of the instruments, or the versions; None for any other page."""
    found = MADE_FROM.search(html)
    if found is None:
        return None
    changed = origin.what_changed(json.loads(unescape(found[1])), (), "", _code())
    return changed._replace(reasons=tuple(INSTRUMENTS for _ in changed.reasons))


def _short(name: str) -> str:
    """A model's name without its folders; names on the hub stay unchanged."""
    return name if name.count("/") == 1 and not Path(name).exists() else Path(name).name


def _pairs(lines: tuple[str, ...]) -> list[tuple[str, str]]:
    """The lines of a summary as pairs of a name and a text."""
    return [(name, rest.strip()) for name, rest in ((line[:10].strip(), line[10:]) for line in lines)]


def _section(probe: Probe, number: int, outcome: Outcome) -> dict[str, Any]:
    """The section of one instrument."""
    one, data = outcome.instrument, outcome.data
    section: dict[str, Any] = {"name": one.name, "title": one.title, "theory": one.theory, "source": one.source}
    section |= {"skipped": outcome.skipped, "numbers": [], "figure": None, "table": None, "along": None}
    if data is None:
        return section
    section["figure"] = {"svg": Markup(plotting.render(lambda ds, fig: one.plot(ds, fig), data, one.title)), "caption": one.caption}
    section["numbers"] = [_row(n) for n in outcome.numbers()]
    section["table"] = None if one.table is None else one.table(data)
    if len(probe.checkpoints) > 1:
        drawn = traces(probe, number)
        svg = plotting.render(lambda _, fig: along(drawn, fig), xr.Dataset(), f"{one.title} along training")
        caption = "Along training: mean over pieces of the text, in one line per layer if layers are shown. Bands: 95% intervals."
        section["along"] = {"svg": Markup(svg), "caption": caption}
    return section


def _row(n: Number) -> dict[str, Any]:
    """A number for the page."""
    inside = np.isfinite(n.low) and np.isfinite(n.high)
    interval = Markup("{} to {}").format(formatting.number(n.low), formatting.number(n.high)) if inside else ""
    return {"name": n.name, "value": n.value, "interval": interval, "expected": n.expected, "says": n.says}


def traces(probe: Probe, number: int) -> dict[str, xr.DataArray]:
    """The quantities that an instrument shows along training, with the dimension ``step``."""
    by_label: dict[str, list[xr.DataArray]] = {}
    steps = []
    for checkpoint in probe.checkpoints:
        outcome = checkpoint.outcomes[number]
        if outcome.data is None:
            continue
        steps.append(checkpoint.step)
        for label, values in outcome.instrument.traces(outcome.data).items():
            by_label.setdefault(label, []).append(values.astype(float))
    return {label: xr.concat(values, xr.Variable("step", steps), join="outer") for label, values in by_label.items()}


def along(drawn: Mapping[str, xr.DataArray], fig: Figure) -> None:
    """Draw one panel per trace: lines by layer or name, or one line with its interval."""
    panels = np.ravel(fig.subplots(1, max(len(drawn), 1)))
    if len(drawn) > 2:
        fig.set_size_inches(9, 3.2)
    for ax, (label, values) in zip(panels, drawn.items(), strict=False):
        _panel(ax, values)
        ax.set(xlabel="training step", ylabel="\n".join(textwrap.wrap(label, WRAP)))
        ax.ticklabel_format(axis="y", useOffset=False)
        bottom, top = float(values.min()), float(values.max())
        if 0 <= bottom <= top / 2:
            ax.set_ylim(0, None if top else 1)
        steps = values.step.values
        least = max(float(steps[steps > 0].min()), 1.0) if (steps > 0).any() else np.inf
        if steps.max() > 20 * least:
            ax.set_xscale("symlog", linthresh=least)
            ax.set_xlim(steps.min() - 0.2 * least, 1.2 * steps.max())  # default margins would show negative steps


def _panel(ax: Axes, values: xr.DataArray) -> None:
    others = [dim for dim in values.dims if dim not in ("step", "piece")]
    mean = values.mean("piece") if "piece" in values.dims else values
    if not others:
        if values.sizes.get("piece", 1) > 1:
            _, low, high = stats.mean_interval(values, "piece")
            ax.fill_between(values.step, low, high, color=COLORS["measured"], alpha=0.22, linewidth=0)
        ax.plot(values.step, mean.transpose("step"), "o-", color=COLORS["measured"])
        return
    names = values[others[0]].values if others[0] in values.coords else np.arange(values.sizes[others[0]])
    rows = mean.transpose(others[0], "step").values
    if names.dtype.kind in "iuf" and others[0] == "layer":
        plotting.lines(ax, values.step.values, rows, color_by=names.tolist(), name="layer", linewidth=1.2)
        return
    colors = [COLORS[name] for name in values.attrs["colors"]] if "colors" in values.attrs else CYCLE
    for name, row, color in zip(names, rows, colors, strict=False):
        ax.plot(values.step, row, "o-", label=f"{name:g}" if names.dtype.kind in "iuf" else str(name), color=color, markersize=3)
