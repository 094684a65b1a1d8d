"""What tracing reveals about programs: shipped for the programs of the theories, kept in the user's cache folder for others.

So nothing is traced twice for planning. The shipped file, ``probes.json``, is written by :mod:`jaxdyn.maintain.shipped`.
"""

from __future__ import annotations

import concurrent.futures as cf
import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jaxdyn.engine.cache import read_cached, write_cached
from jaxdyn.engine.chunk import Program, versions
from jaxdyn.engine.failure import let_through
from jaxdyn.engine.resource import identity_of
from jaxdyn.engine.sources import packaged, source_hash
from jaxdyn.engine.tracing import probe

__all__ = ["SHIPPED", "cached_key", "facts_of", "shipped_key", "untraced"]

FACTS = {"bytes": int, "executor": str, "group": int, "heavy": bool}
UNTRACED = {"bytes": 0, "executor": "vmap", "group": 0, "heavy": False}
SHIPPED, CACHED = Path(__file__).with_name("probes.json"), "probes.jsonl"


def _checked(read: Any) -> dict[str, dict[str, Any]]:
    """The facts of the programs in a file; none where they are not those of this version."""
    try:
        return {name: facts for name, facts in read.items() if {n: type(value) for n, value in facts.items()} == FACTS}
    except AttributeError:
        return {}


@functools.cache
def shipped_probes() -> dict[str, dict[str, Any]]:
    """The facts of the programs of the theories, the same on every platform."""
    try:
        return _checked(json.loads(SHIPPED.read_text()))
    except (OSError, ValueError):
        return {}


def shipped_key(program: Program) -> str:
    """The key of a program in the shipped file, without the versions of libraries: these change at most the sizes of chunks."""
    facts = repr((str(program.trial), source_hash(program.trial), program.static))
    return hashlib.sha256(facts.encode()).hexdigest()[:20]


def cached_key(program: Program) -> str:
    """The key of a program in the user's cache: facts are the same on every device."""
    facts = repr((shipped_key(program), identity_of(program), versions()))
    return hashlib.sha256(facts.encode()).hexdigest()[:20]


def _known(programs: Iterable[Program]) -> tuple[dict[str, Any], dict[Program, dict[str, Any] | None]]:
    """The user's cache, and the facts of programs as far as they are known."""
    cached = _checked(read_cached(CACHED))
    return cached, {program: cached.get(cached_key(program)) or shipped_probes().get(shipped_key(program)) for program in programs}


def untraced(programs: Iterable[Program]) -> int:
    """How many programs are to be traced before runs can be planned."""
    return sum(facts is None for facts in _known(programs)[1].values())


def facts_of(programs: list[Program], pool: cf.Executor | None = None) -> dict[Program, dict[str, Any]]:
    """``{"bytes", "executor", "group", "heavy"}`` for each program; programs that are neither shipped nor in the cache are traced.

    A trial that raises while it is traced raises again when it is run, and is reported then.

    Args:
        programs: the programs.
        pool: where those of the package are traced; None: here.
    """
    cached, found = _known(programs)
    unknown = [program for program, facts in found.items() if facts is None]
    elsewhere = [program for program in unknown if packaged(program.trial)]
    traced = {} if pool is None else dict(zip(elsewhere, pool.map(_traced, elsewhere), strict=True))
    traced |= {program: _traced(program) for program in unknown if program not in traced}
    if new := {cached_key(program): facts for program, facts in traced.items() if facts is not None}:
        write_cached(CACHED, cached | new)
    return {program: facts or traced[program] or dict(UNTRACED) for program, facts in found.items()}


def _traced(program: Program) -> dict[str, Any] | None:
    """What tracing reveals; None where the trial raises."""
    try:
        facts: dict[str, Any] = probe(program)
    except BaseException as error:
        let_through(error)
        return None
    return facts
