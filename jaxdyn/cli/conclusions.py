"""Conclusions stored in the output folder, so that nothing is judged or drawn twice on the same runs, sources and libraries.

One file per claim, ``conclusions/<claim>.gz``: a checksum, the hash of the conclusion's basis, and the conclusion. A file that is
damaged or based on other data is ignored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import xarray as xr

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.judging.decision import Decision, decision_from
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.chunk import versions
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.task import Task
from jaxdyn.errors import StoreError

__all__ = ["basis", "file_of", "is_concluded", "judged_by", "load_conclusion", "save_conclusion"]

PACKING = 3  # compression level; figures are text and shrink to a fifth
DECIDING = ("jaxdyn.engine.judging.verdict", "jaxdyn.report.drawing")  # modules that every conclusion and figure goes through
JUDGING = ("matplotlib", "numpy", "pandas", "scipy", "xarray")  # libraries that judges and plots use


def judged_by(claim: Claim) -> str | None:
    """Hash of the modules behind a claim, its judge and its plot, and of those that decide; None for a user's own claim.

    A user's judge may read anything. None, too, where other code than the package's runs, which may have changed the package's.
    """
    if not direct.alone():
        return None
    home = str(registry.home(claim)).removesuffix(".py").replace("/", ".")
    makers = [getattr(function, "func", function) for function in (claim.judge, claim.plot) if function is not None]
    modules = {home, *(str(maker.__module__) for maker in makers)}
    if not all(name.startswith("jaxdyn.") for name in modules):
        return None
    facts = versions(), direct.versions_of(JUDGING), direct.modules_behind(*sorted(modules), *DECIDING)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def basis(task: Task, data: xr.Dataset, controls: dict[str, xr.Dataset], drawn: bool = True) -> str | None:
    """Hash of everything that determines a conclusion and its figure; it begins with :func:`judged_by`, and is None as that is."""
    if (judged := judged_by(task.claim)) is None:
        return None
    digest = hashlib.sha256(repr((task.claim.id, task.by, task.terms, drawn)).encode())
    for name, ds in {"": data, **controls}.items():
        for label, variable in sorted(ds.variables.items(), key=lambda item: str(item[0])):
            values = variable.values
            digest.update(repr((name, label, variable.dims, values.dtype.str, values.shape)).encode())
            digest.update(repr(values.tolist()).encode() if values.dtype == object else values.tobytes())
    return judged + digest.hexdigest()


def file_of(folder: Path, claim_id: str) -> Path:
    """The file of a claim's conclusion in an output folder."""
    return folder / "conclusions" / f"{claim_id}.gz"


def is_concluded(folder: Path, claim: Claim) -> bool:
    """Whether a conclusion on the claim by the judge of today is stored, on whatever runs."""
    saved = _saved(folder, claim.id)
    return saved is not None and str(saved[0]).startswith(judged_by(claim) or "-")


def save_conclusion(folder: Path, claim_id: str, basis_hash: str | None, decision: Decision) -> None:
    """Write a conclusion, unless it is an error: failed claims are tried again."""
    if basis_hash is None or decision.failure is not None:
        return
    # an unusual value in a check or a full disk costs only time: the conclusion will be drawn again
    with contextlib.suppress(TypeError, ValueError, RecursionError, StoreError):
        content = json.dumps([basis_hash, dataclasses.asdict(decision)])
        atomic_write(file_of(folder, claim_id), gzip.compress(f"{_checksum(content)}\n{content}".encode(), PACKING))


def load_conclusion(folder: Path, claim_id: str, basis_hash: str | None) -> Decision | None:
    """The stored conclusion, if its basis is the same."""
    saved = _saved(folder, claim_id)
    if saved is None or saved[0] != basis_hash:
        return None
    with contextlib.suppress(ValueError):
        return decision_from(saved[1])
    return None


def _saved(folder: Path, claim_id: str) -> tuple[Any, Any] | None:
    """A stored conclusion's basis and its fields; None if the file is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, EOFError, zlib.error):
        checksum, _, content = gzip.decompress(file_of(folder, claim_id).read_bytes()).decode().partition("\n")
        if checksum == _checksum(content) and len(saved := parse_json(content)) == 2:
            return tuple(saved)
    return None


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
