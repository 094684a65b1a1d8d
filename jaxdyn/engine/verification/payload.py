"""The JSON object of a whole verification, which ``--json`` prints, output folders store, and reports are made from."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.contract import COUNTED
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.runs.blocks import distinct_runs
from jaxdyn.engine.verification.last_verdicts import not_run
from jaxdyn.engine.verification.result import Cost, Result, entry

__all__ = ["by_chance", "counts", "environment", "payload"]

PACKAGE = Path(__file__).parents[2]
RECORDS = ":(exclude,glob)theories/*/recorded/**"  # results, which change nothing that is run


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the package's checkout, with a plus sign if files differ from it; None without a checkout."""
    try:
        run = functools.partial(subprocess.run, cwd=PACKAGE, capture_output=True, encoding="utf-8", timeout=10, check=True)
        head = run(["git", "rev-parse", "--short=10", "HEAD"]).stdout.strip()
        return head + ("+" if run(["git", "status", "--porcelain", "--untracked-files=no", ".", RECORDS]).stdout.strip() else "")
    except (OSError, subprocess.SubprocessError):
        return None


def environment() -> dict[str, Any]:
    """Date, commit, versions and machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "python": platform.python_version(),
        **{p: _version(p) for p in ("jaxdyn", "jax", "jaxlib", "diffrax", "optax", "numpy")},
        "platform": f"{platform.system()} {platform.machine()}",
        "device": f"{jax.devices()[0].device_kind} ({jax.local_device_count()} for JAX, {os.cpu_count()} processor cores)",
    }


def payload(results: Sequence[Result], seconds: float, others: Sequence[Claim] = (), load: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of all claims of a call, and the costs of their programs.

    A claim's ``runs`` counts its own runs; the call's ``runs`` counts all different runs, including those of controls.

    Args:
        results: of the claims that were run.
        seconds: duration of the call.
        others: claims that were selected but not run; ``not_run`` has their last recorded verdicts.
        load: files with users' own claims.
    """
    costs: dict[Program, Cost] = {}
    users: dict[Program, list[str]] = {}
    for verified in results:
        for cost in verified.costs:  # a claim that failed early may have incomplete costs
            costs[cost.program] = max(cost, costs.get(cost.program, cost), key=lambda c: c.runs)
            users.setdefault(cost.program, []).append(verified.claim.id)
    whole = {
        "claims": list(map(entry, results)),
        "not_run": [not_run(claim, load) for claim in others],
        "counts": counts([v.claim for v in results]),
        "programs": len(costs),
        "runs": sum(distinct_runs(r for v in results for r in v.task.requests).values()),
        "costs": [_cost(costs[program], ids) for program, ids in users.items()],
        "by_chance": by_chance(results),
        "seconds": seconds,
        "environment": environment(),
    }
    return dict(finite(whole))


def counts(claims: Sequence[Claim]) -> dict[str, int]:
    """Number of these claims of every kind: to be upheld, misprints, beyond print, and to be measured."""
    return {kind: sum(claim.counted == kind for claim in claims) for kind in COUNTED}


def by_chance(results: Sequence[Result]) -> dict[str, Any]:
    """Number of upheld claims that rest on intervals, and how many of them would be expected by chance if all were false.

    A false check passes if its interval misses the truth: with a probability of at most 1 − level at look k, and of 2ᵏ − 1 times
    that in all k looks. A claim must pass all its checks; its probability is bounded by that of the likeliest interval check.
    """
    upheld = [v for v in results if v.verdict == "upheld"]
    errors = [[(1 - c.level) * (2**v.task.terms.look - 1) for c in v.checks if c.level is not None] for v in upheld]
    return {"claims": sum(map(bool, errors)), "expected": sum(max(own) for own in errors if own)}


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | tuple | None) else str(value)


def _cost(cost: Cost, ids: list[str]) -> dict[str, Any]:
    return {
        "program": cost.program.trial.title,
        "static": {name: _plain(value) for name, value in cost.program.static},
        "compile_seconds": cost.compile_seconds,
        "run_seconds": cost.run_seconds,
        "cpu_seconds": cost.cpu_seconds,
        "runs": cost.runs,
        "claims": ids,
    }
