"""The JSON object of a whole verification: what ``--json`` prints, what is stored, and from which the report is built."""

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
from jaxdyn.engine.verification.origin import judge_code, made_from, runs_of
from jaxdyn.engine.verification.result import Cost, Result, entry

__all__ = ["by_chance", "counts", "environment", "payload", "result_origin"]

PACKAGE = Path(__file__).parents[2]
RECORDS = ":(exclude,glob)theories/*/recorded/**"  # results, which change nothing that is run


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that the package lies in, with a plus sign where files differ from it; None outside one."""
    try:
        run = functools.partial(subprocess.run, cwd=PACKAGE, capture_output=True, text=True, timeout=10, check=True)
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


def payload(results: Sequence[Result], seconds: float, others: Sequence[Claim] = ()) -> dict[str, Any]:
    """All claims of a call, and the cost of the programs behind them.

    ``runs`` of a claim are its own; ``runs`` of the whole are all different runs, those of controls included.

    Args:
        results: what was run.
        seconds: how long it took.
        others: claims that were asked for and not run, with their last recorded verdicts under ``not_run``.
    """
    costs: dict[Program, Cost] = {}
    users: dict[Program, list[str]] = {}
    for verified in results:
        for cost in verified.costs:  # a claim that failed early may have incomplete costs
            costs[cost.program] = max(cost, costs.get(cost.program, cost), key=lambda c: c.runs)
            users.setdefault(cost.program, []).append(verified.claim.id)
    whole = {
        "claims": [entry(v) | {"made_from": result_origin(v)} for v in results],
        "not_run": [not_run(claim) for claim in others],
        "counts": counts([v.claim for v in results]),
        "programs": len(costs),
        "runs": sum(distinct_runs(r for v in results for r in v.task.requests).values()),
        "costs": [_cost(costs[program], ids) for program, ids in users.items()],
        "by_chance": by_chance(results),
        "seconds": seconds,
        "environment": environment(),
    }
    return dict(finite(whole))


def result_origin(result: Result) -> dict[str, Any] | None:
    """What the result of a claim was made from; None where it was skipped."""
    programs = [cost.program for cost in result.costs]
    return made_from(programs, runs_of(result.task.requests), judge_code(result.claim)) if programs else None


def counts(claims: Sequence[Claim]) -> dict[str, int]:
    """How many of these claims are to be upheld, are misprints, are beyond print, and are to be measured."""
    return {kind: sum(claim.counted == kind for claim in claims) for kind in COUNTED}


def by_chance(results: Sequence[Result]) -> dict[str, Any]:
    """The level of the whole: upheld claims that rest on intervals, and how many of them would be, were they all false.

    A check that is false passes where its interval misses the truth: with a probability of at most 1 − level at this look, and of
    2ᵏ − 1 times that in all k. A claim has all its checks to pass, so that the likeliest of them bounds it.
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
        "runs": cost.runs,
        "claims": ids,
    }
