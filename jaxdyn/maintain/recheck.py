"""Stored runs held to what they promise: a share of the programs is run afresh, and gives the same bits; and old shards go.

For a folder that outlives a checkout, in which continuous integration verifies: what has the same identity is not run again, so an
identity that misses something would be believed for ever. Each day of the week another seventh of the programs is checked.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.cli.pool import of_processes, processes
from jaxdyn.engine.base.devices import elsewhere
from jaxdyn.engine.base.failure import Failure
from jaxdyn.engine.base.reference import Ref, resolve
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.chunk import Chunk, Program
from jaxdyn.engine.programs.program import run_chunk
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.shard import read_shard
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = ["DAYS", "differing", "drawn", "prune", "recheck", "stored_chunk", "stored_program"]

DAYS = 7


def drawn(program_id: str, day: datetime.date) -> bool:
    """Whether a program is checked on a day: in every week on one of its days, by lot."""
    year, week, weekday = day.isocalendar()
    return int(hashlib.sha256(f"{year} {week} {program_id}".encode()).hexdigest(), 16) % DAYS == weekday - 1


def stored_chunk(path: Path) -> tuple[Chunk, Arrays]:
    """The chunk of a shard as it was run, without a store, and what is stored of it."""
    cells, result = read_shard(path)
    facts = result.facts
    chunk = Chunk(
        stored_program(facts), tuple(cells), facts["seeds"], group=facts["group"], room=tuple(facts["room"]), zipped=result.zipped
    )
    return chunk, result


def stored_program(facts: Mapping[str, Any]) -> Program:
    """The program that the facts of a shard name, as it was run."""
    parts = facts["program"]
    static = tuple((name, _hashable(value)) for name, value in parts["static"])
    how = {name: parts[name] for name in ("executor", "compiler", "fingerprint")}
    return Program(Ref(**parts["trial"]), Ref(**parts["setting"]), static, **how)


def _hashable(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def recheck(folder: Path, before: float, day: datetime.date, workers: int = 2) -> Iterator[tuple[str, int, list[str]]]:
    """Run the day's share of the programs of a folder afresh, in the chunk shapes as stored.

    Args:
        folder: the ``--out`` of a verification.
        before: the time before which shards were written that are checked: what has just been run is not run twice.
        day: decides the share.
        workers: processes.

    Yields:
        A program, its runs, and the names of the arrays that are not the same bits.
    """
    shards = [path for path in sorted(folder.glob("shards/*/*.nc")) if path.stat().st_mtime < before]
    stored = [(*stored_chunk(path), path.parent.name) for path in shards if drawn(path.parent.name, day)]
    chosen = [each for each in stored if _exists(each[0].program)]
    facts = direct.facts_of([chunk.program for chunk, _, _ in chosen])
    with elsewhere(of_processes(workers)):
        current = [
            (chunk, result)
            for chunk, result, name in chosen
            if dataclasses.replace(chunk.program, fingerprint=facts[chunk.program]["fingerprint"]).identity() == name
        ]
    with processes(workers) as pool:
        runs = [pool.submit(_again, chunk) for chunk, _ in current]
        for (chunk, result), again in zip(current, runs, strict=True):
            found = again.result()
            if isinstance(found, Failure):
                raise UsageError(f"{chunk.program.trial.title} cannot be run again: {found}")
            yield f"{chunk.program.trial.title} {chunk.program.label}", chunk.runs, differing(result, found)


def _exists(program: Program) -> bool:
    """Whether the trial and the setting of a stored program can be imported: code is moved, renamed, and removed."""
    try:
        resolve(program.trial)
        resolve(program.setting)
    except (ImportError, AttributeError, UsageError):
        return False
    return True


def _again(chunk: Chunk) -> Arrays | Failure:
    try:
        return run_chunk(chunk)
    except Exception as error:
        return Failure.of(error)


def differing(stored: Arrays, found: Arrays) -> list[str]:
    """The names of the arrays of two results that are not the same bits, or that only one of them has."""
    names = sorted({*stored.arrays, *found.arrays})
    return [name for name in names if _bits(stored.arrays.get(name)) != _bits(found.arrays.get(name))]


def _bits(array: np.ndarray[Any, Any] | None) -> Any:
    return None if array is None else (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())


def prune(folder: Path, most: int) -> int:
    """Remove the shards that were not used for the longest time until the folder has at most so many bytes; returns how many go."""
    files = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
    size, gone = sum(stat.st_size for _, stat in files), 0
    for path, stat in sorted(files, key=lambda each: each[1].st_atime_ns):
        if size <= most:
            break
        if path.suffix == ".nc":
            path.unlink(missing_ok=True)
            size, gone = size - stat.st_size, gone + 1
    return gone


def report(found: Iterable[tuple[str, int, list[str]]], out: Any = sys.stdout) -> int:
    """Print what was found; returns the exit code: 1 where a program gave other bits."""
    programs, runs, bad = set[str](), 0, 0
    for program, count, names in found:
        programs.add(program)
        runs += count
        if names:
            bad += 1
            print(f"{program}: {', '.join(names)} differ from what is stored, though nothing has changed", file=out)
    print(
        f"run afresh: {plural(len(programs), 'stored program')} with {plural(runs, 'run')}; {plural(bad, 'chunk')} differ", file=out
    )
    return int(bad > 0)


def chosen_day(text: str | None) -> datetime.date:
    """Today, or a date given as a text.

    Raises:
        UsageError: a text that is no date.
    """
    try:
        return datetime.datetime.now(datetime.UTC).date() if text is None else datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--day {text} is not allowed: it is a date such as 2026-01-31") from None
