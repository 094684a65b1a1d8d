"""The JSON object of a verification: what ``--json`` prints, what is stored, and what the report is made from."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax

from jaxdyn.engine.runs import Runs
from jaxdyn.engine.setting import field_table
from jaxdyn.engine.task import Verified

__all__ = ["environment", "payload"]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def environment() -> dict[str, Any]:
    """Machine and versions."""
    return {
        "python": platform.python_version(),
        **{p: _version(p) for p in ("jaxdyn", "jax", "jaxlib", "diffrax", "optax", "numpy")},
        "platform": f"{platform.system()} {platform.machine()}",
        "device": f"{jax.devices()[0].device_kind} ({jax.local_device_count()} for JAX, {os.cpu_count()} processor cores)",
    }


def _finite(value: Any) -> Any:
    """The same structure with null for numbers that JSON does not know."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _settings(verified: Verified) -> dict[str, Any]:
    return {row["name"]: row["value"] for row in field_table(verified.task.main.grid)}


def _entry(verified: Verified) -> dict[str, Any]:
    claim, decision = verified.claim, verified.conclusion.decision
    entry = {
        "id": claim.id,
        "theory": claim.theory,
        "statement": claim.statement,
        "source": claim.source,
        "expected": claim.expected,
        "verdict": decision.verdict,
        "resolution": decision.resolution,
        "programs": verified.programs,
        "runs": len(verified.task.main.grid.cells()) * len(verified.task.main.seeds),
        "diverged": decision.diverged,
        "compile_seconds": verified.compile_seconds,
        "run_seconds": verified.run_seconds,
        "checks": [asdict(c) for c in decision.checks],
        "controls": [asdict(c) for c in decision.controls],
        "scale": verified.task.scale,
        "seeds": len(verified.task.main.seeds),
        "settings": _settings(verified),
        "command": verified.task.command,
        "message": decision.message,
    }
    if claim.counterpart is not None:
        entry |= {"counterpart": claim.counterpart, "counterpart_checks": [asdict(c) for c in decision.counterpart_checks]}
    if verified.by is not None:
        entry["by"] = {"fields": list(verified.task.by), "cells": verified.by}
    return entry


def payload(results: Sequence[Verified], seconds: float) -> dict[str, Any]:
    """All claims of a call, with the number of different programs behind them."""
    programs = {Runs.key(r, cell) for v in results for r in v.task.requests for cell in r.grid.cells()}
    whole = {"claims": [_entry(v) for v in results], "programs": len(programs), "seconds": seconds, "environment": environment()}
    return dict(_finite(whole))
