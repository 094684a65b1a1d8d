"""Answers of the referee, stored in the output folder, so that nothing is asked twice of the same runs, sources and libraries.

One file per claim, ``referee/<claim>.gz``: a checksum and, for quick and for whole inquiries, the hash of the basis and the
answers. A file that is damaged or based on other code is ignored.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxdyn.attacks.recorded import what_was_asked
from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.chunk import versions
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.origin import keys_of, runs_of
from jaxdyn.engine.verification.task import Task
from jaxdyn.errors import StoreError

__all__ = ["basis", "load_answers", "save_answers"]

ATTACKS = "jaxdyn.attacks.listed"
LIBRARIES = ("scipy", "xarray")


def basis(task: Task) -> str | None:
    """Hash of all that determines the answers on a claim; None for a user's own, whose code may read anything.

    None, too, where other code than the package's runs, which may have changed the package's.
    """
    if not direct.alone():
        return None
    claim = task.claim
    home = str(registry.home(claim)).removesuffix(".py").replace("/", ".")
    modules = sorted({home, *(str(getattr(f, "func", f).__module__) for f in (claim.judge, claim.trial))})
    keys = keys_of(program for request in task.requests for program in request.programs.values())
    if not all(name.startswith("jaxdyn.") for name in modules) or not (keys or task.missing):
        return None
    facts = (
        versions(),
        [version(name) for name in LIBRARIES],
        direct.modules_behind(*modules, ATTACKS),
        keys,
        runs_of(task.requests),
        what_was_asked(claim),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _file(folder: Path, claim: Claim) -> Path:
    return folder / "referee" / f"{claim.id}.gz"


def save_answers(folder: Path, claim: Claim, basis_hash: str | None, quick: bool, entry: dict[str, Any]) -> None:
    """Write the answers on a claim, next to those of the other kind of inquiry."""
    if basis_hash is None:
        return
    whole = _saved(folder, claim) | {_kind(quick): [basis_hash, entry]}
    with contextlib.suppress(TypeError, ValueError, StoreError):  # it costs only time
        content = json.dumps(whole)
        atomic_write(_file(folder, claim), gzip.compress(f"{_checksum(content)}\n{content}".encode(), 3))


def load_answers(folder: Path, claim: Claim, basis_hash: str | None, quick: bool) -> dict[str, Any] | None:
    """The stored entry of a claim, if its basis is the same; for a quick inquiry a whole one will do."""
    saved = _saved(folder, claim)
    for kind in dict.fromkeys((_kind(quick), _kind(False))):
        if basis_hash is not None and saved.get(kind, [None])[0] == basis_hash:
            return dict(saved[kind][1])
    return None


def _kind(quick: bool) -> str:
    return "quick" if quick else "whole"


def _saved(folder: Path, claim: Claim) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError, EOFError, zlib.error):
        checksum, _, content = gzip.decompress(_file(folder, claim).read_bytes()).decode().partition("\n")
        if checksum == _checksum(content):
            return dict(parse_json(content))
    return {}


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
