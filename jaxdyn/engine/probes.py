"""What tracing reveals about programs, kept in the user's cache folder: planning a second time traces nothing."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from jaxdyn.engine.cache import cache_dir
from jaxdyn.engine.chunk import Program
from jaxdyn.engine.program import probe
from jaxdyn.engine.store import atomic_write
from jaxdyn.errors import UsageError

__all__ = ["facts_of"]


def facts_of(programs: list[Program]) -> dict[Program, dict[str, Any]]:
    """``{"bytes", "executor"}`` for each program; programs that the cache does not have are traced.

    A trial that raises while it is traced raises again when it is run, and is reported then.
    """
    file = cache_dir() / "probes.json"
    try:
        read = json.loads(file.read_text()).items()
        known = {name: facts for name, facts in read if facts.keys() == {"bytes", "executor"}}
    except (OSError, ValueError, AttributeError):
        known = {}
    found, new = {}, False
    for program in programs:
        name = program.identity()
        if name not in known:
            try:
                known[name], new = probe(program), True
            except Exception:
                found[program] = {"bytes": 0, "executor": "vmap"}
                continue
        found[program] = known[name]
    if new:
        with contextlib.suppress(UsageError, OSError):  # a cache that cannot be written costs time only
            atomic_write(file, json.dumps(known))
    return found
