"""The last recorded verdict of each claim: what a page shows of claims that were not run.

``python -m jaxdyn.maintain verdicts`` writes the shipped file, ``verdicts.json``, from a verification of all claims.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jaxdyn.engine.claim import Claim
from jaxdyn.engine.digest import digest
from jaxdyn.engine.outcome import described
from jaxdyn.engine.store import atomic_write
from jaxdyn.errors import UsageError

__all__ = ["RECORDED", "not_run", "recorded_verdicts", "write_verdicts"]

RECORDED = Path(__file__).with_name("verdicts.json")
WHEN = ("date", "commit", "device")


@functools.cache
def recorded_verdicts() -> dict[str, Any]:
    """``{"date", "commit", "device", "verdicts": {id: [verdict, digest]}}``; empty where the file is missing or damaged."""
    try:
        read = json.loads(RECORDED.read_text())
        return read if {*WHEN, "verdicts"} <= read.keys() else {}
    except (OSError, ValueError, AttributeError):
        return {}


def not_run(claim: Claim) -> dict[str, Any]:
    """The entry of a claim that was not run: what it says, and its last recorded verdict, with when and where that was.

    ``recorded`` is None for a claim that has none; its ``stale`` says that checks, controls or rivals have changed since.
    """
    found = recorded_verdicts()
    verdict, then = found.get("verdicts", {}).get(claim.id, (None, None))
    recorded = verdict and {"verdict": verdict, "stale": then != digest(claim), **{name: found[name] for name in WHEN}}
    return {**described(claim), "verdict": "not run", "recorded": recorded, "command": f"jaxdyn verify {claim.id}"}


def write_verdicts(folder: Path, target: Path = RECORDED) -> int:
    """Write the verdicts of a verification, given by its output folder; returns how many there are.

    Raises:
        UsageError: no results, or claims that were not run.
    """
    try:
        result = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        raise UsageError(f"{folder} holds no results of `jaxdyn verify`; give the folder that was its --out") from None
    if result.get("not_run"):
        raise UsageError(f"claims were left out ({len(result['not_run'])} not run): it takes a verification of all claims")
    environment = result["environment"]
    lines = [
        f"{json.dumps(c['id'])}: {json.dumps([c['verdict'], c['digest']])}" for c in result["claims"] if c["verdict"] != "skipped"
    ]
    head = "".join(f'"{name}": {json.dumps(environment[name])},\n' for name in WHEN)
    atomic_write(target, f'{{\n{head}"verdicts": {{\n' + ",\n".join(lines) + "\n}}\n")
    recorded_verdicts.cache_clear()
    return len(lines)
