"""The last recorded verdict of each claim with its numbers, which pages show for claims that were not run; and looks at its runs.

``python -m jaxdyn.maintain verdicts`` adds the verdicts of a verification to the shipped file, ``verdicts.json``.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.failure import installed, source_file
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.base.syntax import code_hash
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.contract import PROVENANCE, provenance
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.engine.judging.digest import content, digest
from jaxdyn.engine.storage import looks
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.result import Result, described
from jaxdyn.errors import UsageError

__all__ = ["RECORDED", "not_run", "recorded_verdicts", "with_looks", "write_verdicts"]

RECORDED = Path(__file__).parents[1] / "verdicts.json"
WHEN = ("date", "commit", "device")
DIGITS = 5  # of a recorded number


@functools.cache
def recorded_verdicts() -> dict[str, dict[str, Any]]:
    """``{id: {"verdict", "digest", "date", "commit", "device", "numbers"}}``; empty if the file is missing or damaged.

    Numbers are those of checks, gates and readings by their names, each ``[value]`` or ``[value, low, high]``; None: not finite.
    """
    try:
        read = parse_json(RECORDED.read_text(encoding="utf-8"))
        calls = [dict(zip(WHEN, call, strict=True)) for call in read["calls"]]
        return {
            name: {"verdict": verdict, "digest": own, **calls[i], "numbers": numbers}
            for name, (verdict, own, i, numbers) in read["verdicts"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return {}


def not_run(claim: Claim, load: Sequence[str] = ()) -> dict[str, Any]:
    """The entry of a claim that was not run: its description, and its last recorded verdict with date, commit, device, numbers.

    ``load`` are the files with users' own claims, which its command names. ``last_verdict`` is None if none was recorded; its
    ``stale`` says whether checks, controls or rivals may have changed since.
    """
    found, now = recorded_verdicts().get(claim.id), digest(claim)
    last = found and {n: found[n] for n in ("verdict", *WHEN, "numbers")} | {"stale": now is None or found["digest"] != now}
    command = " ".join([f"jaxdyn verify {claim.id}", *(f"--load {shlex.quote(path)}" for path in load)])
    return {**described(claim), "verdict": "not run", "last_verdict": last, "command": command}


def with_looks(result: Result) -> Result:
    """A result that says whether bounds or design were changed after runs were seen, and is remembered as a look itself.

    Looks at a claim's own runs count, on its own grid with whatever seeds; and claims of a user's own, or of a checkout. Bounds
    that are said to be tuned have said so, and those of a paper were not chosen here.
    """
    claim, task = result.claim, result.task
    place = source_file(claim.judge)
    typed = place is None or place.startswith("<")
    home = Path.cwd() if place is None or typed else Path(place).resolve()
    answers = [*result.gates, *result.checks]
    if not answers or result.by is not None or task.overrides or installed(home):
        return result
    grid = claim.grid(task.scale)
    look = looks.LookRecord(
        bounds={check.name: [repr(end) for end in check.bound] for check in answers},
        values={check.name: check.value for check in answers},
        design=repr((field_table(grid), claim.seed_count(task.scale), claim.max_seeds, sorted(map(str, claim.assumes)))),
        judge=content(claim.judge),
        file=None if typed else code_hash(home.read_bytes()),
        seeds=list(task.main.seeds),
        as_expected=result.as_expected,
    )
    seen = looks.remember(claim.id, home, task.scale, look)
    said = looks.sentence(seen) if str(provenance(claim.bounds)).startswith(PROVENANCE["derived"]) else ""
    return dataclasses.replace(result, looks=said)


def _added(entry: Mapping[str, Any]) -> bool:
    """Whether a run has more seeds than its claim's own because these left a check undecided."""
    claim = registry.all_claims().get(entry["id"])
    most = 0 if claim is None else claim.max_seeds or 0
    return bool(entry["look"] > 1) and entry["seeds"] <= most and entry["seed_range"] == f"0:{entry['seeds']}"


def _numbers(entry: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The numbers of an entry's checks, gates and readings by their names, each with its interval if it has one."""
    ones = [*entry["checks"], *entry["gates"], *entry["readings"]]
    return {one["name"]: [_rounded(x) for x in (one["value"], *(one["interval"] or ()))] for one in ones}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def write_verdicts(folder: Path, target: Path = RECORDED) -> int:
    """Add the verdicts in an output folder to the shipped file; returns their number.

    Raises:
        UsageError: the folder has no results, or results on other seeds or settings than the claims' own.
    """
    try:
        result = parse_json((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    claims = [c for c in result["claims"] if c["verdict"] != "skipped"]
    changed = (" --set ", " --scale ", " --by ", " --fresh ")
    seeds = [c["id"] for c in claims if " --seeds " in c["command"] and not _added(c)]
    if other := [*seeds, *(c["id"] for c in claims if c["command"].startswith("#") or any(w in c["command"] for w in changed))]:
        raise UsageError(f"{other[0]} was run with other seeds or settings than its own: these are not recorded")
    environment = result["environment"]
    made = {n: environment[n] for n in WHEN}
    now = {c["id"]: {"verdict": c["verdict"], "digest": c["digest"], **made, "numbers": _numbers(c)} for c in claims}
    whole = recorded_verdicts() | now
    calls = list(dict.fromkeys(tuple(entry[n] for n in WHEN) for entry in whole.values()))
    rows = [
        [one["verdict"], one["digest"], calls.index(tuple(one[n] for n in WHEN)), one["numbers"]]
        for one in (whole[name] for name in sorted(whole))
    ]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in zip(sorted(whole), rows, strict=True))
    atomic_write(target, f'{{\n"calls": {json.dumps(calls)},\n"verdicts": {{\n{lines}\n}}\n}}\n')
    recorded_verdicts.cache_clear()
    return len(now)
