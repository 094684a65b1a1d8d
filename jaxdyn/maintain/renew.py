"""Recorded results, which of them are current, and renewal of those that are not.

Recorded are studies at paper scale, maps, the figures of the documents, pages of probes, tables of benchmarks and results of
compiling ahead of time. Each says what it was made from (:mod:`jaxdyn.engine.verification.origin`). Renewal takes those that are
not current, cheap and old ones first, runs them into a folder in the user's cache, where an interrupted call is resumed, and
stores them where they belong.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from jaxdyn.cli.pool import processes, worker_count
from jaxdyn.cli.verify import MANY, draw
from jaxdyn.engine.base.syntax import code_hash, imports_of
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.programs.program import check_device
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs.blocks import Runs
from jaxdyn.engine.storage.cache import cache_dir
from jaxdyn.engine.storage.shard import stored_shards
from jaxdyn.engine.storage.store import open_folder
from jaxdyn.engine.verification import origin
from jaxdyn.engine.verification.payload import environment, payload
from jaxdyn.engine.verification.result import Result, entry
from jaxdyn.engine.verification.task import Task, planned
from jaxdyn.engine.verification.verify import conclude, plan_tasks, run_plan, task_costs
from jaxdyn.errors import UsageError
from jaxdyn.maintain import ahead, atlas
from jaxdyn.report import probe, studies
from jaxdyn.report.atlas import read_map
from jaxdyn.report.formatting import duration
from jaxdyn.report.terminal import JUDGING
from jaxdyn.wording import plural

__all__ = [
    *("BENCHMARK", "JUDGING", "KINDS", "RESULTS", "Record", "check", "lacks", "made_by", "records", "renew", "script_of"),
    *("scripts_behind", "stored_tables", "table_changes"),
]

FOLDER = "renew"  # in the cache folder
UNKNOWN = 900.0  # expected seconds of what was never timed
NICE = 10
RESULTS = Path("benchmarks", "results")  # in a checkout
BENCHMARK = "the code of the benchmark"
TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.M)


@dataclasses.dataclass(frozen=True)
class Record:
    """A recorded result.

    Args:
        kind: a key of :data:`KINDS`.
        name: its name.
        changed: what has changed since it was recorded.
        date: when that was, ``2026-11-22``; empty if it is not known.
        costs: expected seconds of the parts of its renewal; records share parts of the same key, which are paid once.
        renew: makes it anew until a time (:func:`time.monotonic`) and stores it; returns what came out, or None if the time did
            not suffice. What it raises as a :class:`UsageError` is reported.
        unit: records of one unit are renewed together.
        obstacle: why it cannot be renewed here; empty if it can.
    """

    kind: str
    name: str
    changed: origin.Changes
    date: str = ""
    costs: Mapping[Hashable, float] = dataclasses.field(default_factory=dict)
    renew: Callable[[float], str | None] | None = None
    unit: str = ""
    obstacle: str = ""

    def seconds(self, paid: set[Hashable]) -> float:
        """Expected seconds of its renewal."""
        return JUDGING + sum(seconds for part, seconds in self.costs.items() if part not in paid)

    @property
    def age(self) -> float:
        """Days since it was recorded; a year if that is not known."""
        try:
            then = datetime.strptime(self.date, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            return 365.0
        return max((datetime.now(UTC) - then).days, 0)


# the records of each kind


def _studies(root: Path, whole: bool) -> Iterator[Record]:
    for claim in registry.all_claims().values():
        study = studies.read_study(claim.id)
        if study is None:
            continue
        changed = studies.changes(study, claim, whole=whole)
        record = Record("studies", claim.id, changed, _date(study["environment"]), unit=claim.id)
        yield _with_runs(record, claim, study) if changed else record


def _with_runs(record: Record, claim: Claim, study: Mapping[str, Any]) -> Record:
    """The record of a study that is not current, with what its renewal costs: no runs where only the judge has changed."""
    try:
        task = studies.task_of(claim, study, again=True)
    except UsageError as error:
        return dataclasses.replace(record, obstacle=str(error))
    if task.missing is not None:
        return dataclasses.replace(record, obstacle=task.missing)
    judged = record.changed == origin.Changes((origin.JUDGE,)) and studies.read_data(claim.id) is not None

    def renewed(until: float) -> str | None:
        return (_judge_again(claim, study) if judged else None) or _run_study(claim, task, until)

    return dataclasses.replace(record, costs={} if judged else _costs(record, task), renew=renewed)


def _costs(record: Record, task: Task) -> dict[Hashable, float]:
    """Expected seconds of the programs of a study; none for those whose runs an earlier call has left in the cache folder."""
    costs = task_costs([task])
    if not {origin.PROGRAM, origin.UNRECORDED}.isdisjoint(record.changed.reasons) or record.changed.versions:
        return costs  # they are not looked for, since planning would trace them
    for job in planned(task.requests, _folder("studies"), "paper"):
        here = {path.name.partition(".")[0] for path in stored_shards(_folder("studies"), job.chunks[0].program_id)}
        if here.issuperset(chunk.identity() for chunk in job.chunks):
            costs[Runs.program_key(job.program)] = 0.0
    return costs


def _folder(kind: str) -> Path:
    """Where the runs of records of a kind are stored."""
    return cache_dir() / FOLDER / kind


def _judge_again(claim: Claim, study: Mapping[str, Any]) -> str | None:
    """Judge a study's kept data, and store the study; None if these are too few for a decision, so that runs have to be added."""
    task, kept = studies.task_of(claim, study), studies.read_data(claim.id)
    if kept is None:  # they were there a moment ago
        return None
    decision = conclude(claim, *kept, (), task.terms)
    if decision.undecided and studies.task_of(claim, study, again=True).grown() is not None:
        return None
    result = Result.of(decision, task, data=kept[0], control_data=kept[1])
    if result.verdict == "error":
        return _failed(result)
    before = study["claim"]
    known = {name: before[name] for name in ("compile_seconds", "run_seconds") if name in before}
    keys = origin.keys_of(origin.programs_of(task.requests))
    made_from = before["made_from"] | {"keys": keys, "code": origin.judge_code(claim)}
    svg = draw(claim, kept[0], task.narrowed)
    studies.write_study(entry(result) | known | {"made_from": made_from}, environment(), claim, svg, kept)
    return f"{_outcome(result)}, judged on the kept data"


def _run_study(claim: Claim, task: Task, until: float) -> str | None:
    """Make the runs of a study, as far as they are not in the cache folder, judge them, and store the study."""
    begin = time.monotonic()
    with open_folder(_folder("studies"), "renew") as folder:
        results = run_plan(plan_tasks([task], scale="paper", store=folder), None, until=until)
    if not results:
        return None
    (result,) = results
    if result.verdict in ("error", "skipped"):
        return _failed(result)
    whole = payload(results, time.monotonic() - begin)
    assert result.data is not None, "it was judged"
    svg, data = draw(claim, result.data, result.task.narrowed), (result.data, result.control_data)
    studies.write_study(whole["claims"][0], whole["environment"], claim, svg, data)
    return _outcome(result)


def _outcome(result: Result) -> str:
    return result.verdict if result.as_expected else f"{result.verdict}, expected {result.claim.expected}"


def _failed(result: Result) -> str:
    raise UsageError(f"not stored: {result.verdict}, {result.message}")


def _maps(root: Path, whole: bool) -> Iterator[Record]:
    for stored in library.maps():
        if (content := read_map(stored)) is None:
            continue
        found = content["map"]
        seconds = found.get("cpu_seconds") or found.get("seconds") or UNKNOWN

        def renewed(until: float, name: str = stored.name) -> str:
            with contextlib.redirect_stderr(io.StringIO()):
                atlas.make_maps(_folder("maps"), [name], workers=1)
            return "stored"

        changed, when = atlas.changes(stored, content, whole=whole), _date(content["environment"])
        yield Record("maps", stored.name, changed, when, {f"map {stored.name}": seconds}, renewed, stored.name)


def _probes(root: Path, whole: bool) -> Iterator[Record]:
    for file in sorted((root / "docs").rglob("*.html")):
        if (changed := probe.changes(file.read_text(encoding="utf-8"))) is not None:
            obstacle = "`jaxdyn probe` makes it, on a model that is not part of the checkout"
            yield Record("probes", file.relative_to(root).as_posix(), changed, obstacle=obstacle)


def _benchmarks(root: Path, whole: bool) -> Iterator[Record]:
    for name, content in stored_tables(root).items():
        script = script_of(root, name, content)
        record = Record("benchmarks", name, table_changes(content, script), str(content.get("date") or ""))
        if script is None or script.parent.name != "benchmarks":
            by_hand = "no benchmark makes it" if script is None else f"`python {script.relative_to(root)}` makes it"
            yield dataclasses.replace(record, obstacle=by_hand)
            continue
        seconds = (content.get("made_from") or {}).get("seconds") or UNKNOWN

        def renewed(until: float, script: Path = script) -> str:
            done = subprocess.run(
                [sys.executable, str(script)], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8"
            )
            if done.returncode:
                raise UsageError(f"{script.name} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}")
            return "stored"

        costs: Mapping[Hashable, float] = {script.name: float(seconds)}
        yield dataclasses.replace(record, costs=costs, renew=renewed, unit=script.name, obstacle=lacks(script))


# which script makes a table, and by which code: its own, that of the files next to it that it imports, and all that these import


def scripts_behind(script: Path) -> list[Path]:
    """A script and the files next to it that it imports, directly or not."""
    found, todo = list[Path](), [script]
    while todo:
        file = todo.pop()
        if file not in found:
            found.append(file)
            todo += [near for name in _imported(file) if (near := file.with_name(f"{name}.py")).is_file()]
    return sorted(found)


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _code(script: Path) -> str:
    """Hash of the code of a benchmark, but for this module, which the benchmark asks for that hash."""
    files = scripts_behind(script)
    contents = [file.read_bytes() for file in files]
    modules = {name for content in contents for name in imports_of(content, "") if not name.startswith(__name__)}
    return origin.modules_hash(modules, *(code_hash(content) for content in contents))


def made_by(script: Path, seconds: float) -> dict[str, Any]:
    """What a table is made from, to be stored with it.

    Args:
        script: that writes it, in a folder of a checkout.
        seconds: that it took.
    """
    script = script.resolve()
    place = f"{script.parent.name}/{script.name}"
    return {"script": place, "seconds": round(seconds), **origin.made_from((), "", _code(script))}


def table_changes(content: dict[str, Any], script: Path | None) -> origin.Changes:
    """What has changed since a table was made: the code of its benchmark, or the versions."""
    recorded = content.get("made_from")
    found = origin.what_changed(recorded, (), "", "" if script is None else _code(script))
    return found if recorded is None else found._replace(reasons=tuple(BENCHMARK for _ in found.reasons))


def stored_tables(root: Path) -> dict[str, dict[str, Any]]:
    """The stored tables by name."""
    files = [file for file in sorted((root / RESULTS).glob("*.json")) if file.name != ahead.RESULTS.name]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def script_of(root: Path, name: str, content: dict[str, Any]) -> Path | None:
    """The script that makes a table; of an older table, by its name or by what the scripts write; None where it is not known."""
    if made_from := content.get("made_from"):
        script = root / made_from["script"]
        return script if script.is_file() else None
    scripts = sorted((root / "benchmarks").glob("*.py"))
    named = [script for script in scripts if name == script.stem or name.startswith(f"{script.stem}_")]
    writing = [script for script in scripts if f'"{name}"' in script.read_text(encoding="utf-8")]
    return next(iter([*sorted(named, key=lambda script: -len(script.stem)), *writing]), None)


def lacks(script: Path) -> str:
    """What a script needs and this machine lacks; empty where nothing is known to be missing."""
    needs_torch = any(TORCH.search(file.read_text(encoding="utf-8")) for file in scripts_behind(script))
    return "it needs torch, which is not installed" if needs_torch and importlib.util.find_spec("torch") is None else ""


def _ahead(root: Path, whole: bool) -> Iterator[Record]:
    file = root / ahead.RESULTS
    for platform, target in ahead.TARGETS.items():
        about = str(ahead.read(file).get("about", {}).get(platform, ""))

        def renewed(until: float, platform: str = platform) -> str | None:
            done, every = ahead.write(platform, until - time.monotonic(), file)
            return "stored" if done == every else None

        for name, changed in ahead.changes(platform, file).items():
            seconds = timings.shipped_costs()[1].get(name, (timings.COMPILE, 0.0))[0]
            part: Mapping[Hashable, float] = {f"{platform} {name}": seconds}
            yield Record("ahead", f"{target.name}: {name}", changed, about.rpartition(", ")[2], part, renewed, platform)


def _date(about: Mapping[str, Any]) -> str:
    return str(about.get("date") or "").partition(" ")[0]


KINDS: dict[str, tuple[str, Callable[[Path, bool], Iterator[Record]]]] = {
    "studies": ("studies", _studies),
    "maps": ("maps", _maps),
    "probes": ("probe pages", _probes),
    "benchmarks": ("benchmark tables", _benchmarks),
    "ahead": ("programs compiled ahead of time", _ahead),
}


def records(root: Path, kinds: Sequence[str] = (), *, whole: bool = True) -> dict[str, list[Record]]:
    """All recorded results by kind; says on standard error what it is looking at.

    Args:
        root: the checkout.
        kinds: keys of :data:`KINDS`; empty: all.
        whole: name all that has changed; otherwise the first, which takes less time.
    """
    check_device()
    found = {}
    for kind in kinds or KINDS:
        print(f"comparing {KINDS[kind][0]} with today's programs and judges", file=sys.stderr, flush=True)
        found[kind] = list(KINDS[kind][1](root, whole))
    return found


# the two tasks


def check(root: Path, kinds: Sequence[str] = (), verbose: bool = False) -> Iterator[str]:
    """How many recorded results of each kind are current, and, if ``verbose``, what has changed since the others were recorded."""
    if verbose and "studies" in (kinds or KINDS):
        _trace_moved()
    for kind, own in records(root, kinds, whole=verbose).items():
        yield _count(kind, own)
        if verbose:
            yield from (f"  {record.name}: {record.changed}" for record in own if record.changed)


def _trace_moved() -> None:
    """Trace the programs of studies whose code has changed on all cores, if these are many; most are what they were."""
    moved: dict[Program, None] = {}
    for claim in registry.all_claims().values():
        study = studies.read_study(claim.id)
        recorded = study and study["claim"].get("made_from")
        if not recorded or recorded | origin.versions_now() != recorded:
            continue
        with contextlib.suppress(UsageError):  # reported with its record
            programs = origin.programs_of(studies.task_of(claim, study).requests)
            moved |= dict.fromkeys(programs if origin.keys_of(programs) != recorded["keys"] else ())
    if (unknown := len(direct.untraced(moved))) >= MANY:
        print(f"tracing {plural(unknown, 'program')} whose code has changed", file=sys.stderr, flush=True)
        with processes(worker_count(None, unknown)) as pool:
            direct.facts_of(moved, pool)


def _count(kind: str, own: Sequence[Record]) -> str:
    current = sum(not record.changed for record in own)
    sentence = f"{current} of {len(own)} {KINDS[kind][0]} are current"
    other = sum(bool(record.changed.versions) for record in own)
    return f"{sentence}, {other} made with other versions" if other else sentence


def renew(root: Path, minutes: float, kinds: Sequence[str] = ()) -> Iterator[str]:
    """Renew results for some minutes, at low priority; yields a line for each, and at the end what would take longer.

    Results that fit into the time left come first, in the order of expected seconds by days since they were recorded; one that
    takes longer is begun only if no other is left. Those that differ in versions alone come last.

    Args:
        root: the checkout.
        minutes: time after which nothing more is begun.
        kinds: keys of :data:`KINDS`; empty: all.
    """
    end = time.monotonic() + 60 * minutes
    if hasattr(os, "nice"):
        os.nice(max(0, NICE - os.nice(0)))
    every = records(root, kinds)
    current = {kind: sum(not record.changed for record in own) for kind, own in every.items()}
    units: dict[tuple[str, str], list[Record]] = {}
    hindered = list[Record]()
    for record in (record for own in every.values() for record in own if record.changed):
        if record.obstacle:
            hindered.append(record)
        else:
            units.setdefault((record.kind, record.unit), []).append(record)
    # the best of those that fit, again and again
    paid = set[Hashable]()
    while units and (left := end - time.monotonic()) > 0:
        seconds = {unit: sum(record.seconds(paid) for record in own) for unit, own in units.items()}
        fitting = [unit for unit in units if seconds[unit] <= left]
        unit = min(fitting or units, key=lambda unit: _rank(units[unit], seconds[unit]))
        own = units.pop(unit)
        begin = time.monotonic()
        outcome, done = _renewed(own[0], end)
        jax.clear_caches()
        if done:
            current[unit[0]] += len(own)
            paid |= {part for record in own for part in record.costs}
        names = ", ".join(record.name for record in own) if unit[0] != "ahead" else unit[1]
        count = f"{current[unit[0]]} of {len(every[unit[0]])} {KINDS[unit[0]][0]} current"
        yield f"{names}: {outcome}; {time.monotonic() - begin:.0f} s ({count})"
    # what remains
    longer = [(sum(record.seconds(paid) for record in own), name) for (_, name), own in units.items()]
    for expected, name in sorted(longer):
        if expected > 60 * minutes:
            yield f"takes longer than {minutes:g} min: {name}, {duration(expected)}"
    yield from (f"not renewed: {record.name}, {record.obstacle}" for record in hindered)


def _rank(own: Sequence[Record], seconds: float) -> tuple[bool, float]:
    """Cheap and old ones first; versions alone last."""
    return not any(record.changed.reasons for record in own), seconds / max(1.0, max(record.age for record in own))


def _renewed(record: Record, end: float) -> tuple[str, bool]:
    """Renew one unit; returns what came out, and whether it is stored."""
    assert record.renew is not None, "only records without an obstacle are renewed"
    try:
        outcome = record.renew(end)
    except UsageError as error:
        return str(error), False
    return ("not finished, to be resumed", False) if outcome is None else (outcome, True)
