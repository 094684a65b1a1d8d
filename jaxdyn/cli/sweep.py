"""``jaxdyn sweep``: runs a trial of one's own over a grid and seeds, and writes a page, a table and all runs."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxdyn.cli.pool import executor, reserved, worker_count
from jaxdyn.engine.base.devices import check_options
from jaxdyn.engine.base.failure import Failure
from jaxdyn.engine.base.parsing import Span, from_home, parse_sets, parse_span, typed
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.claims.description import field_texts
from jaxdyn.engine.claims.grid import Grid, Points, grid
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs.chunk import Job
from jaxdyn.engine.programs.program import check_device
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.costs import expected, guessed
from jaxdyn.engine.runs.designs import MOST_POINTS, is_numeric, random_grid, values_along
from jaxdyn.engine.runs.planning import plan, why_not_stored
from jaxdyn.engine.runs.sweep import chosen_seeds, opened, sweep
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import UsageError
from jaxdyn.nn.choices import module_of
from jaxdyn.report.sweep import page
from jaxdyn.report.sweep_table import Table, table
from jaxdyn.wording import duration, plural

__all__ = ["FILES", "chosen_grid", "setting_of", "sweep_command", "trial_of"]

FILES = ("index.html", "sweep.json", "runs.csv")
MOST = 10**7  # runs of one command
COUNT = 10  # values of a range that does not say how many
RANGE = "FIELD=FROM:TO, FIELD=FROM:TO:log, either with :N for N values, or FIELD=V1,V2"
SOON = 5.0  # expected seconds below which this process does all, since workers take time to start
NAMED = 5  # cells with failed runs that are named in the terminal


@dataclasses.dataclass(frozen=True)
class Design:
    """What ``--grid``, ``--random`` and ``--sobol`` ask for: the cells, the fields with one value, and the design in words."""

    grid: Grid
    fixed: Mapping[str, Any]
    words: str


def trial_of(name: str) -> tuple[ModuleType, Callable[..., Any]]:
    """The module and the trial of ``FILE:NAME`` or ``module:NAME``.

    Raises:
        UsageError: there is none, or it is no function of a setting and a key.
    """
    place, colon, attribute = name.rpartition(":")
    if not (colon and place and attribute):
        raise UsageError(f"{typed(name)} is not allowed: write FILE:FUNCTION, e.g. mine.py:trial, or module:FUNCTION")
    place = str(from_home(place))
    module = module_of("trial", f"{place}:{attribute}", place)
    found = getattr(module, attribute, None)
    if found is None:
        functions = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
        known = f"; its functions are: {', '.join(functions)}" if functions else ""
        raise UsageError(f"{typed(name)} is not allowed: {place} has nothing called {attribute!r}{known}")
    if not callable(found) or isinstance(found, type) or not hasattr(found, "__qualname__"):
        raise UsageError(f"{typed(name)} is not allowed: {attribute} is no function; a trial is a function (setting, key)")
    try:
        inspect.signature(found).bind(None, None)
    except (TypeError, ValueError):
        raise UsageError(f"{typed(name)} is not allowed: {attribute} does not take (setting, key), as a trial does") from None
    return module, found


def setting_of(module: ModuleType, trial: Callable[..., Any], name: str | None) -> type[Any]:
    """The setting's class of a trial: the one called ``name`` in its module (or ``FILE:NAME``), or that of its annotation.

    Raises:
        UsageError: there is none.
    """
    title = getattr(trial, "__name__", "trial")
    here = [n for n, c in vars(module).items() if _is_setting(c)]
    known = f"; settings in its module: {', '.join(here)}" if here else "; its module has no class decorated with @jd.setting"
    if name is not None:
        place, _, attribute = name.rpartition(":")
        home = module_of("setting", name, str(from_home(place))) if place else module
        found: Any = getattr(home, attribute, None)
        if not _is_setting(found):
            raise UsageError(f"--setting {typed(name)} is not allowed: there is no setting of this name{known}")
        return found  # type: ignore[no-any-return]
    annotated = _annotation(trial)
    if _is_setting(annotated):
        return annotated  # type: ignore[no-any-return]
    first = next(iter(inspect.signature(trial).parameters))
    if annotated is inspect.Parameter.empty:
        example = here[0] if here else "MySetting"
        raise UsageError(
            f"{title} does not say what its setting is: write {title}({first}: {example}, …), or add --setting NAME{known}"
        )
    raise UsageError(f"{title}({first}: {_title(annotated)}) names no setting: its class is decorated with @jd.setting{known}")


def _annotation(trial: Callable[..., Any]) -> Any:
    """The annotation of a trial's first parameter; text that names nothing stays text."""
    try:
        parameters = inspect.signature(trial, eval_str=True).parameters
    except Exception:  # whatever the text raises
        parameters = inspect.signature(trial).parameters
    return next(iter(parameters.values())).annotation


def _is_setting(thing: Any) -> bool:
    return isinstance(thing, type) and "hints" in vars(thing) and "swept_fields" in vars(thing)


def _title(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else typed(str(annotation))


def chosen_grid(cls: type[Any], items: Sequence[str], draw: tuple[str, int, int] | None, seeds: int = 1) -> Design:
    """The cells that ``--grid`` asks for: a product, or with ``draw`` (method, number, seed) points within the ranges.

    Raises:
        UsageError: an unknown field, a range that is none, a value that is not allowed, or too many runs.
    """
    fields = {name: _choice(cls, name, value, draw is not None) for name, value in parse_sets(items, "--grid").items()}
    if draw is not None:
        method, count, seed = draw
        _refuse_many(count, seeds)
        if not any(isinstance(value, Span | list) for value in fields.values()):
            raise UsageError(f"--{method} {count} is not allowed: --grid gives no field a range FROM:TO or several values")
        points = random_grid(cls, count, fields, seed=seed, method=method)  # type: ignore[arg-type]
        words = f"{plural(count, 'point')}, {method}{f', draw {seed}' if seed else ''}"
        return Design(points, _fixed(points, fields), words)
    cells = 1
    for value in fields.values():
        cells *= (value.count or COUNT) if isinstance(value, Span) else len(value) if isinstance(value, list) else 1
    _refuse_many(cells, seeds)
    values = {n: values_along(cls, n, v, v.count or COUNT) if isinstance(v, Span) else v for n, v in fields.items()}
    product = grid(cls, **values)
    sizes = " × ".join(f"{len(own)} {name}" for name, own in product.axes.items())
    return Design(product, _fixed(product, fields), sizes or "one cell")


def _fixed(cells: Grid, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``--grid`` with one value."""
    varied = cells.columns if isinstance(cells, Points) else cells.axes
    return {name: str(value) if isinstance(value := cells.values(name), tuple) else value for name in fields if name not in varied}


def _choice(cls: type[Any], name: str, value: Any, drawn: bool) -> Any:
    """A field's range, values or value; only a number has a range: in other fields a colon belongs to a value."""
    if not (isinstance(value, str) and ":" in value and is_numeric(cls, name)):
        return value
    given = f"--grid {name}={value}"
    span = parse_span(value, given, RANGE)
    if span.count is not None and drawn:
        raise UsageError(
            f"{given} is not allowed with --random or --sobol, which say how many points there are; write FROM:TO[:log]"
        )
    if span.count is not None and span.count < 2:
        raise UsageError(f"{given} is not allowed: a range has at least 2 values")
    return span


def _refuse_many(cells: int, seeds: int) -> None:
    """Refuse more cells or runs than one command makes, before any of them is made."""
    if cells > MOST_POINTS or cells * seeds > MOST:
        what = f"{plural(cells, 'cell')} with {plural(seeds, 'seed')} each are {plural(cells * seeds, 'run')}"
        raise UsageError(
            f"{what}, which is not allowed: at most {MOST_POINTS:,} cells and {MOST:,} runs; try --random N or --sobol N"
        )


def sweep_command(
    name: str,
    *,
    setting: str | None,
    items: Sequence[str],
    draw: tuple[str, int, int] | None,
    seeds: Any,
    out: Path,
    csv: bool,
    workers: int | None,
    cluster: str | None,
    options: Sequence[str],
) -> dict[str, Any]:
    """Announce a sweep, run it, and write its page; returns its cells as JSON. ``options``: the words of the command."""
    check_options()
    cards = reserved(workers, cluster)  # before the trial's module, which may open a device
    module, trial = trial_of(name)
    cls = setting_of(module, trial, setting)
    own_seeds = chosen_seeds(seeds)
    design = chosen_grid(cls, items, draw, len(own_seeds))
    check_device()
    request = Request(trial, design.grid, own_seeds)
    programs = len({static for static, _ in map(split, design.grid.cells())})
    with _plainly(trial):
        jobs = [] if cluster or cards else plan([request], store=None)
    sentence = why_not_stored(jobs)
    for line in filter(None, (sentence, _announcement(request, design, programs, jobs), _other_sweep(out, request))):
        _say(line)
    quick = bool(jobs) and sum(map(expected, jobs)) < SOON
    count = workers or (1 if quick else worker_count(None, programs))
    with executor(count, cluster, cards) as (pool, _), Progress("sweep") as progress, opened(out, trial) as folder:
        with _plainly(trial), warnings.catch_warnings():
            if sentence is not None:
                warnings.filterwarnings("ignore", re.escape(sentence))
            found = table(sweep(trial, design.grid, own_seeds, out=folder, cluster=pool, progress=progress))
        result = _write(found, design, request, folder, csv, programs, shlex.join(["jaxdyn", "sweep", *options]))
    for line in _lines(found, out, csv):
        _say(line)
    return result


@contextlib.contextmanager
def _plainly(trial: Callable[..., Any]) -> Iterator[None]:
    """An exception of the trial becomes one sentence with its place."""
    try:
        yield
    except (UsageError, BrokenExecutor, OSError):
        raise
    except Exception as error:
        raise UsageError(f"{trial.__name__} raised {Failure.of(error, trial)}") from error


def _announcement(request: Request, design: Design, programs: int, jobs: Sequence[Job]) -> str:
    """What a sweep will do, in words."""
    seeds, trial = len(request.seeds), request.trial.__name__
    work = f"{plural(request.runs, 'run')} in {plural(programs, 'program')}"
    known = bool(jobs) and not any(map(guessed, jobs))
    time = f"; {duration(sum(map(expected, jobs)))} expected" if known else ""
    return f"{trial}: {design.words}, {plural(seeds, 'seed')}; {work}{time}; Ctrl-C is safe, the same command resumes"


def _write(found: Table, design: Design, request: Request, folder: Path, csv: bool, programs: int, command: str) -> dict[str, Any]:
    """Write page, numbers and runs; an interruption leaves none of another sweep among them. Returns the JSON object."""
    facts = request.attributes()
    head = {"trial": facts["trial"], "design": design.words, "seeds": facts["seeds"], "settings": json.loads(facts["settings"])}
    result = head | {"programs": programs} | found.to_json()
    shown = [("Grid", design.words), ("Seeds", facts["seeds"]), ("Runs", f"{found.status.size:,}")]
    shown += (
        [("Fixed", ", ".join(f"{name} = {field_texts([value])[0]}" for name, value in design.fixed.items()))]
        if design.fixed
        else []
    )
    contents = {
        FILES[0]: page(found, facts["trial"], shown, command),
        FILES[1]: json.dumps(result, indent=1, default=str),
        **({FILES[2]: found.to_csv(design.fixed)} if csv else {}),
    }
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    for name, content in reversed(contents.items()):
        atomic_write(folder / name, content)
    return result


def _other_sweep(folder: Path, request: Request) -> str:
    """A sentence on the page in a folder, unless it is of the same settings and seeds."""
    try:
        stored = json.loads((folder / FILES[1]).read_text(encoding="utf-8"))
        words, facts = f"{stored['design']}, seeds {stored['seeds']}", request.attributes()
        same = (stored["settings"], stored["seeds"]) == (json.loads(facts["settings"]), facts["seeds"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return "" if same else f"{folder} holds the page of another sweep ({words}), which is replaced; --out DIR keeps it"


def _lines(found: Table, out: Path, csv: bool) -> list[str]:
    """The outcome in words."""
    counts = ", ".join(f"{count:,} {name}" for name, count in found.statuses().items())
    lines = [f"{plural(found.status.size, 'run')}: {counts}"]
    failed = list(found.failed())
    for cell, word, seeds in failed[:NAMED]:
        where = found.words(cell)
        lines.append(f"  {word}: {where}{', ' * bool(where)}{len(seeds)} of {plural(len(found.seeds), 'seed')}")
    if len(failed) > NAMED:
        lines.append(f"  and {len(failed) - NAMED} more, on the page")
    lines += [f"runs: {out / FILES[2]}"] if csv else []
    return [*lines, f"page: {out / FILES[0]}"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
