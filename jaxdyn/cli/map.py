"""``jaxdyn map``: plans, runs and judges a map, and writes the results."""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from jaxdyn import plotting
from jaxdyn.cli.cards import unused
from jaxdyn.cli.pool import executor, reserved, worker_count
from jaxdyn.engine.base.devices import check_options, devices
from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.parsing import parse_span, parse_values
from jaxdyn.engine.base.streams import telling
from jaxdyn.engine.claims.description import field_texts, texts
from jaxdyn.engine.claims.grid import labels_of
from jaxdyn.engine.programs.program import check_device
from jaxdyn.engine.storage.store import atomic_write, open_folder
from jaxdyn.engine.verification.verdict_map import Axis, Map, Survey, prepare_survey, run_survey
from jaxdyn.errors import UsageError
from jaxdyn.report import map_figure
from jaxdyn.report.formatting import diverged, unasked
from jaxdyn.report.gallery import standalone
from jaxdyn.wording import duration, plural

__all__ = ["map_command", "parse"]

JUDGING = 0.1  # seconds per cell
FILES = ("map.json", "map.nc", "map.svg")


def parse(items: Sequence[str]) -> dict[str, Axis]:
    """The axes of ``--over FIELD=LOW:HIGH[:log]`` or ``--over FIELD=V1,V2,…``.

    Raises:
        UsageError: anything else, or a field given twice.
    """
    axes: dict[str, Axis] = {}
    for item in items:
        name, equals, text = (part.strip() for part in item.partition("="))
        allowed = "write FIELD=LOW:HIGH, FIELD=LOW:HIGH:log or FIELD=V1,V2,…"
        if not (name and equals and text):
            raise UsageError(f"--over {item} is not allowed: {allowed}")
        if name in axes:
            raise UsageError(f"--over {item}: {name} is given twice")
        if ":" not in text or '"' in text:
            values = tuple(parse_values(text))
            if not values:
                raise UsageError(f"--over {item} is not allowed: {allowed}")
            axes[name] = Axis(name, values=values)
            continue
        span = parse_span(text, f"--over {item}", allowed.removeprefix("write "))
        if span.count is not None:
            raise UsageError(f"--over {item} is not allowed: a map chooses its own values; --cells N says how many")
        axes[name] = Axis(name, span.low, span.high, log=span.log)
    return axes


def map_command(
    claim: str,
    *,
    over: Sequence[str],
    cells: int,
    scale: str,
    seeds: Any,
    sets: Mapping[str, Any],
    out: Path,
    workers: int | None,
    cluster: str | None,
    load: Sequence[str],
) -> dict[str, Any]:
    """Map a claim: write the map next to its runs, and return it as JSON."""
    check_options()
    cards = reserved(workers, cluster)
    with telling("planning"):
        survey = prepare_survey(claim, parse(over), cells=cells, scale=scale, seeds=seeds, overrides=sets, load=load)
    check_device()
    if (sentence := unused()) is not None:
        _say(sentence)
    count = worker_count(workers, 2**10)
    with open_folder(out, f"map of {survey.claim.id}") as folder:
        with executor(count, cluster, cards) as (pool, count):
            with telling("planning"):
                announcement = _announcement(survey, count)
            _say(announcement)
            if (earlier := _other_map(folder, survey)) is not None:
                _say(f"{out} holds {earlier}, which is replaced; --out DIR keeps it")
            result = run_survey(survey, store=folder.resolve(), pool=pool, workers=count)
        write(result, folder)
    for line in _lines(result, out):
        _say(line)
    return result.to_json()


def write(result: Map, folder: Path) -> None:
    """Write the map as JSON, as a labelled Dataset and as a figure; an interruption leaves none of another map among them."""
    content = json.loads(json.dumps(result.to_json(), default=str))
    label = f"{result.claim} over {' and '.join(axis.field for axis in result.axes)}"
    svg = plotting.render(lambda _, fig: map_figure.draw(content, fig), xr.Dataset(), label)
    files: tuple[str | bytes, ...] = json.dumps(content, indent=1), bytes(result.data.to_netcdf()), standalone(svg)
    for name in FILES[1:]:
        (folder / name).unlink(missing_ok=True)
    for name, data in zip(FILES, files, strict=True):
        atomic_write(folder / name, data)


def _other_map(folder: Path, survey: Survey) -> str | None:
    """The map in a folder in words, if it is over other values, at other settings or on other seeds than the one asked for."""
    try:
        stored = json.loads((folder / FILES[0]).read_text(encoding="utf-8"))
        over, settings = stored["over"], stored.get("settings", {})
        words = " and ".join(map(_over, over))
        seeds = str(stored.get("seed_range") or survey.seed_range)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    asked = json.loads(json.dumps(finite({"over": [a.to_json() for a in survey.axes], "settings": survey.settings}), default=str))
    others = [f"{name}={_text(value)}" for name, value in settings.items() if asked["settings"].get(name, value) != value]
    others += [f"seeds {seeds}"] if seeds != survey.seed_range else []
    if over == asked["over"] and not others:
        return None
    return f"a map over {words}{' with ' if others else ''}{', '.join(others)}"


def _over(axis: Mapping[str, Any]) -> str:
    """An axis of a stored map as on the command line."""
    if "values" in axis:
        return f"{axis['field']}={_text(axis['values'])}"
    return f"{axis['field']}={':'.join(field_texts([axis['low'], axis['high']]))}{':log' * axis['log']}"


def _text(value: Any) -> str:
    """A value of JSON, or a list of values, as on the command line."""
    values = value if isinstance(value, list) else [value]
    return ",".join(field_texts(labels_of([tuple(v) if isinstance(v, list) else v for v in values])))


def _announcement(survey: Survey, workers: int) -> str:
    """An upper limit on the cost of a map, in words."""
    runs = len(survey.request(survey.first()[0]).grid.cells()) * len(survey.seeds)
    seconds = (survey.seconds() + JUDGING * survey.cells) / workers
    cells = f"{plural(len(survey.first()), 'cell')} first, {survey.cells} at most, {plural(runs, 'run')} each"
    where = devices()
    known = where.on_cpu or not survey.guessed()
    time = f"{duration(seconds)} expected" if known else f"duration unknown: it never ran on a {where.platform} here"
    return f"{survey.claim.id}: {cells}; {time}"


def _lines(result: Map, out: Path) -> list[str]:
    """The results, in words."""
    counts = collections.Counter(cell["verdict"] for cell in result.cells)
    cells = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    work = f"{plural(result.runs, 'run')}, {plural(result.programs, 'program')}, {result.seconds:.0f} s"
    lines = [f"{plural(len(result.cells), 'cell')}: {cells}; {work}"]
    if result.border is not None:
        across, up = (axis.field for axis in result.axes)
        b = result.border
        lines.append(
            f"border: {up} = {b.factor:.3g} · {across}^{b.exponent:.3f}, exponent {b.interval[0]:.3f} to {b.interval[1]:.3f} "
            f"(95 %), its {plural(b.points, 'point')} off by a factor of {b.spread:.2f}, each between "
            f"cells a factor of {b.step:.2f} apart (root mean squares)"
        )
    elif len(result.axes) == 1:
        (axis,) = result.axes
        ends = [sorted(end[axis.field] for end in edge) for edge in result.edges]
        lines += [f"border: {axis.field} between {' and '.join(texts(pair))}" for pair in sorted(ends)]
    reasons = collections.Counter(cell["failed"] for cell in result.cells if cell.get("failed"))
    lines += [f"  {count} × {reason}" for reason, count in reasons.most_common(5)]
    lines += [*diverged(result.cells), *unasked(result.unasked)]
    return [*lines, f"map: {out / FILES[2]}"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
