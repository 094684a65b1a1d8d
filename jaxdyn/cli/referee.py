"""``jaxdyn referee``: asks of claims what a hostile referee would ask; claims on the same runs together, in worker processes."""

from __future__ import annotations

import collections
import concurrent.futures as cf
import functools
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdyn.attacks.answer import OUTCOMES
from jaxdyn.attacks.inquiry import refereed
from jaxdyn.attacks.outcomes import basis, load_answers, save_answers
from jaxdyn.attacks.recorded import ANSWERS, counted
from jaxdyn.cli.pool import executor, worker_count
from jaxdyn.engine.base.devices import check_options
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.program import check_device
from jaxdyn.engine.storage.store import atomic_write, open_folder
from jaxdyn.engine.verification.verify import make_tasks, task_costs
from jaxdyn.errors import Absent
from jaxdyn.wording import plural

__all__ = ["ask_groups", "referee_command", "write_answers"]

SIGNS = {"finding": "✗", "excused": "–", "noticed": "✓"}


def referee_command(
    patterns: Sequence[str],
    *,
    quick: bool,
    out: Path,
    workers: int | None,
    load: Sequence[str],
    minutes: float | None = None,
) -> tuple[dict[str, Any], int]:
    """Ask the selected claims, or those that fit into ``minutes``; returns the JSON object and the exit code (1: open findings)."""
    began = time.monotonic()
    until = math.inf if minutes is None else began + 60 * minutes
    check_options()
    with open_folder(out, "verify") as folder:
        check_device()
        claims = registry.select(patterns, load)
        groups = _groups(claims, load)
        count = worker_count(workers, len(groups))
        entries: dict[str, dict[str, Any]] = {}
        with Progress("refereeing") as progress, executor(count, None) as (pool, _):
            own = "; the claims' own runs are made where they are not stored, and no others" if quick else ""
            progress.say(f"{plural(len(claims), 'claim')} in {plural(len(groups), 'group')} on the same runs{own}")
            try:
                progress.part("refereeing", "claims", 0, len(claims))
                for found in ask_groups(pool, groups, folder, quick, tuple(load), load and claims, until):
                    for entry in found:
                        entries[entry["id"]] = entry
                        for line in _lines(entry):
                            progress.say(line)
                        progress.part("refereeing", "claims", len(entries), len(claims))
            finally:  # those asked before it was stopped, too
                write_answers(folder, list(entries.values()))
    ordered = [entries[claim.id] for claim in claims if claim.id in entries]
    left = [claim.id for claim in claims if claim.id not in entries]
    whole = {"claims": ordered, "outcomes": counted(ordered), "not_asked": left, "seconds": time.monotonic() - began}
    findings = sum(not f["excuse"] for entry in ordered for a in entry["attacks"] for f in a["findings"])
    more = f"; {plural(len(left), 'claim')} not asked yet: the same command goes on with them" if left else ""
    print(f"{plural(len(ordered), 'claim')}: {plural(findings, 'open finding')}{more}", file=sys.stderr)
    return whole, int(findings > 0)


def write_answers(folder: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the answers, next to those on other claims that earlier calls left; what is lost of these is said."""
    file = folder / ANSWERS
    before: dict[str, Any] = {}
    try:
        before = {entry["id"]: entry for entry in parse_json(file.read_text(encoding="utf-8"))["claims"]}
        fewer = [one["id"] for one in entries if _asked(before.get(one["id"], {})) - _asked(one)]
    except FileNotFoundError:
        fewer = []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        before, fewer = {}, []
        print(f"{file} is damaged: the answers of earlier calls are left out", file=sys.stderr)
    if fewer:
        print(f"{file}: more had been asked of {', '.join(fewer)}; those answers are replaced", file=sys.stderr)
    whole = before | {entry["id"]: entry for entry in entries}
    atomic_write(file, json.dumps({"claims": [whole[name] for name in sorted(whole)]}))


def _asked(entry: Mapping[str, Any]) -> set[str]:
    """The attacks of an entry that were asked."""
    return {attack["name"] for attack in entry.get("attacks", ()) if attack["outcome"] != "not asked"}


def _groups(claims: Sequence[Claim], load: Sequence[str]) -> list[list[Claim]]:
    """Claims that share runs, the cheapest first."""
    found: dict[Any, list[Claim]] = collections.defaultdict(list)
    for claim in claims:
        found[claim.trial, repr(claim.quick.base), repr(claim.quick.axes)].append(claim)
    return sorted(found.values(), key=lambda group: sum(task_costs(make_tasks(group, load=load)).values()))


def ask_groups(
    pool: cf.Executor | None,
    groups: Sequence[Sequence[Claim]],
    folder: Path,
    quick: bool,
    load: tuple[str, ...],
    own: Any,
    until: float,
) -> Iterator[list[dict[str, Any]]]:
    """The entries of each group, as they are reached; no group is begun after some time."""
    if pool is None or own:
        yield from (_group(folder, group, quick, load) for group in groups if time.monotonic() < until)
        return
    waiting = [pool.submit(_group_by_ids, folder, [claim.id for claim in group], quick, load) for group in groups]
    for done in cf.as_completed(waiting):
        if not done.cancelled():
            yield done.result()
        if time.monotonic() >= until:
            for future in waiting:
                future.cancel()


@functools.cache
def claims_here(theory: str) -> dict[str, Claim]:
    """In a worker: the claims of one theory, imported once."""
    direct.allow()
    return registry.all_claims((), {theory})


def _group_by_ids(folder: Path, ids: Sequence[str], quick: bool, load: tuple[str, ...]) -> list[dict[str, Any]]:
    """In a worker: look claims up by their ids, and ask."""
    return _group(folder, [claims_here(name.split(".")[0])[name] for name in ids], quick, load)


def _group(folder: Path, claims: Sequence[Claim], quick: bool, load: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_entry(folder, claim, quick, load) for claim in claims]


def _entry(folder: Path, claim: Claim, quick: bool, load: tuple[str, ...]) -> dict[str, Any]:
    """The stored entry of a claim, or a new one."""
    try:
        key = basis(make_tasks([claim], load=load)[0])
    except Absent:
        key = None
    if (before := load_answers(folder, claim, key, quick)) is not None:
        return before
    start = time.process_time()
    entry = refereed(claim, quick=quick, store=folder, load=load).to_json()
    entry["seconds"] = time.process_time() - start
    save_answers(folder, claim, key, quick, entry)
    return entry


def _lines(entry: Mapping[str, Any]) -> Iterator[str]:
    """A claim's outcome as text: its attacks by outcome, then every open finding."""
    counts = collections.Counter(attack["outcome"] for attack in entry["attacks"])
    sign = next((sign for word, sign in SIGNS.items() if counts[word]), " ")
    words = ", ".join(plural(n, word) if word == "finding" else f"{n} {word}" for word in OUTCOMES if (n := counts[word]))
    yield f" {sign} {entry['id']:<34} {words}"
    for attack in entry["attacks"]:
        yield from (f"     {attack['name']}: {f['text']}" for f in attack["findings"] if not f["excuse"])
