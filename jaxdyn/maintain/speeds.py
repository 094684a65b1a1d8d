"""``docs/benchmarks.md`` and its picture: how fast, next to what a user would run instead, from ``benchmarks/results``.

Each stored table keeps its own columns; :data:`TABLES` says which of them compare with whom. A number is given with the day and the
processor of its run: speeds are not recomputed with the code, so a page of today may hold older ones, and says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from jaxdyn import plotting
from jaxdyn.report.gallery import standalone

__all__ = ["FIGURE", "NAME", "Speed", "figure", "page", "speeds"]

NAME, FIGURE = "benchmarks.md", "benchmarks.svg"
RESULTS = Path("benchmarks", "results")
INTRO = """# Benchmarks

How many times faster jaxdyn is than what one would run instead, timed in turn on one machine, and which share of the peak that the
same run measured for matrix products it reaches. Below 1 the other way is faster. Each number has the processor and the day of its
run; the code may have changed since. The tables with all their columns are in `benchmarks/results`, and `make bench` makes them
again. This page is written by `make docs`.

![Ratios to other ways, and shares of peak](figures/benchmarks.svg)
"""


class Table(NamedTuple):
    """How to read a stored table: what is timed, the columns of a row's label, of the ratio and of the share of peak."""

    what: str
    label: tuple[str, ...]
    ratio: str
    over: str  # the other way, or the column that names it
    peak: str = ""
    rows: str = ""  # a pattern that is in the names of the rows that compare


TABLES = {
    "fig6_torch": Table("Figure 6 of Scan & Snap, 640 runs", (), "times ours", "contestant", rows=r"^torch(?!.*import)"),
    "fig2_torch": Table("Figure 2 of JoMA, 64 runs", (), "times ours", "contestant", rows=r"^torch(?!.*import)"),
    "map_torch": Table("a map of 6,000 networks", (), "times ours", "contestant", rows="^torch"),
    "grok_study": Table("64 networks until they generalise", (), "torch / ours", "torch", peak="of peak"),
    "li2_torch": Table("an epoch of modular addition", ("M", "K"), "torch / ours", "torch, its better way", peak="of peak"),
    "cogo_torch": Table("an epoch of CoGO, 512 units", ("d",), "torch / ours", "torch, its better way", peak="of peak"),
    "lm_torch": Table("a step of a word model", ("layers",), "ours / torch", "torch, its better way", peak="of peak"),
    "transformer": Table("a training step, width 128", (), "times PyTorch's best", "torch, its best way", "of peak", "^here$"),
    "real_model_whole": Table("SmolLM2, whole texts", ("what",), "jaxdyn is faster by", "who", peak="of peak", rows="PyTorch"),
    "real_model_decoding": Table("SmolLM2, decoding", (), "jaxdyn is faster by", "who", peak="of peak", rows="PyTorch"),
    "thoughts": Table("continuous thoughts", ("prompts at once",), "ours / torch", "torch with a cache"),
    "streaming": Table("decoding one stream", ("decoding", "T"), "ours / torch", "torch", peak="of peak"),
    "dense_layer": Table(
        "gradients of an MLP", ("sequences x tokens, width, units",), "faster than PyTorch", "torch", peak="of peak"
    ),
    "ode_batches": Table("1,024 starts of an ODE", ("system",), "/ ours", "contestant", rows="scipy|torchdiffeq"),
    "li2_ascent": Table("climbing to a maximum", ("group",), "over SciPy, loop", "SciPy, a loop", rows="spectra"),
    "construction": Table("1,000 digraphs", (), "/ ours", "contestant", rows="numpy"),
    "joma_table1": Table("a step of Table 1", ("width", "members"), "batch / unique", "attention over whole batches"),
    "factorisations": Table("small matrices", ("what", "n", "dtype"), "jnp / ours", "jnp.linalg", rows="^eigh|^sing"),
}


class Speed(NamedTuple):
    """One line of the page."""

    what: str
    at: str
    over: str
    ratio: float
    peak: float | None
    processor: str
    date: str


def speeds(root: Path) -> list[Speed]:
    """All comparisons of the stored tables of a checkout, in the order of :data:`TABLES`; also those of other machines."""
    found: list[Speed] = []
    for name, table in TABLES.items():
        file = root / RESULTS / f"{name}.json"
        if file.is_file():
            stored = json.loads(file.read_text(encoding="utf-8"))
            for one in (stored, *stored.get("elsewhere", ())):
                found += _of_one(table, one)
    return found


def _of_one(table: Table, stored: Mapping[str, Any]) -> Iterator[Speed]:
    """The comparisons of one run of a benchmark; rows without a ratio are left out."""
    rows = stored["rows"] if table.ratio not in stored else [stored]
    for row in rows:
        own = [str(row[key]) if isinstance(row[key], str) else f"{key} = {row[key]:,}" for key in table.label]
        named = str(row.get(table.over, table.over))
        said = " ".join(str(row.get(key, "")) for key in ("contestant", "who", "way", "step", "what") if key in row)
        if isinstance(row.get(table.ratio), int | float) and re.search(table.rows, said.strip()):
            peak = row.get(table.peak)
            yield Speed(
                table.what,
                ", ".join(own),
                named,
                float(row[table.ratio]),
                float(peak) if isinstance(peak, int | float) and table.over not in row else None,
                str(stored["machine"]["cpu"]).replace("(R)", ""),
                str(stored.get("date") or "–"),
            )


def page(root: Path) -> str:
    """The page as Markdown."""
    lines = [INTRO, "| what | at | next to | times faster | of peak | processor | day |", "|---|---|---|---:|---:|---|---|"]
    for one in speeds(root):
        peak = "" if one.peak is None else f"{one.peak:.0%}"
        lines.append(f"| {one.what} | {one.at} | {one.over} | {_digits(one.ratio)} | {peak} | {one.processor} | {one.date} |")
    return "\n".join(lines) + "\n"


def _digits(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio >= 10 else f"{ratio:.2f}"


def figure(root: Path) -> str:
    """The picture: the ratios of every table, and its shares of peak."""
    by_what: dict[str, list[Speed]] = {}
    for one in speeds(root):
        by_what.setdefault(one.what, []).append(one)

    def draw(_: Any, fig: Figure) -> None:
        left, right = fig.subplots(1, 2, sharey=True, width_ratios=(2, 1))
        for i, all_of in enumerate(reversed(by_what.values())):
            ratios = [one.ratio for one in all_of]
            left.plot([min(ratios), max(ratios)], [i, i], color=plotting.COLORS["measured"], linewidth=2)
            left.plot(ratios, [i] * len(ratios), "o", color=plotting.COLORS["measured"], markersize=4)
            peaks = [one.peak for one in all_of if one.peak is not None]
            right.plot(peaks, [i] * len(peaks), "o", color=plotting.COLORS["theory"], markersize=4)
        left.axvline(1, color="0.5", linewidth=1)
        left.set(xscale="log", xlabel="times faster than the other way")
        left.set_yticks(range(len(by_what)), list(reversed(by_what)))
        right.set(xlim=(0, 1), xlabel="share of the machine's peak")
        fig.set_size_inches(8.5, 0.6 + 0.3 * len(by_what))

    return standalone(plotting.render(draw, None, "Benchmarks"))  # type: ignore[arg-type]  # this drawing reads no Dataset
