"""Where claims are found: the packages under ``jaxdyn.theories``, a user's own files, and installed ``jaxdyn.claims`` entry points.

The catalogue (what ``jaxdyn list`` prints) is cached in the user's cache folder by the hash of all sources, so that
listing imports neither JAX nor any theory. This module itself imports neither.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import importlib
import json
import pkgutil
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Claim

__all__ = ["all_claims", "catalogue", "select", "select_ids"]

PACKAGE = Path(__file__).parents[1]


def _modules(load: Sequence[str | Path]) -> Iterable[tuple[str, Any]]:
    from jaxdyn import theories
    from jaxdyn.engine.reference import load_file

    for info in sorted(pkgutil.iter_modules(theories.__path__), key=lambda i: i.name):
        yield info.name, importlib.import_module(f"jaxdyn.theories.{info.name}")
    for point in entry_points(group="jaxdyn.claims"):
        yield point.value, point.load()
    for path in load:
        yield str(path), load_file(path)


def all_claims(load: Sequence[str | Path] = ()) -> dict[str, Claim]:
    """All claims by id.

    Raises:
        UsageError: a module without a ``CLAIMS`` list, or two claims with one id.
    """
    from jaxdyn.engine.claim import Claim

    found: dict[str, Claim] = {}
    for name, module in _modules(load):
        claims = getattr(module, "CLAIMS", None)
        if not isinstance(claims, list | tuple) or not all(isinstance(c, Claim) for c in claims):
            raise UsageError(f"{name} has no CLAIMS list: put its jd.Claim objects into a list of that name")
        for claim in claims:
            if claim.id in found:
                raise UsageError(f"two claims are called {claim.id}; the second is in {name}")
            found[claim.id] = claim
    return found


def select_ids(ids: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The ids that match any of the shell-style patterns (all, without patterns).

    Raises:
        UsageError: a pattern that matches nothing.
    """
    known = list(ids)
    chosen: dict[str, None] = {}
    for pattern in patterns or ("*",):
        hits = [i for i in known if fnmatch.fnmatchcase(i, pattern) or i.split(".")[0] == pattern]
        if not hits:
            near = difflib.get_close_matches(pattern, known, 3, 0.5)
            hint = (
                f"did you mean {', '.join(near)}?"
                if near
                else f"theories are: {', '.join(sorted({i.split('.')[0] for i in known}))}"
            )
            raise UsageError(f"no claim matches {pattern!r}; {hint} (`jaxdyn list` shows all)")
        chosen |= dict.fromkeys(hits)
    return list(chosen)


def select(patterns: Sequence[str], load: Sequence[str | Path] = ()) -> list[Claim]:
    """The claims that match any of the patterns."""
    claims = all_claims(load)
    return [claims[i] for i in select_ids(claims, patterns)]


def _entry(claim: Claim) -> dict[str, Any]:
    from jaxdyn.engine.setting import field_table

    grid = claim.grid("quick")
    return {
        "id": claim.id,
        "theory": claim.theory,
        "statement": claim.statement,
        "source": claim.source,
        "expected": claim.expected,
        "controls": list(claim.controls),
        "fields": field_table(grid),
        "runs": {s: len(claim.grid(s).cells()) * claim.seed_count(s) for s in ("quick", "paper")},
    }


def _source_key(load: Sequence[str | Path]) -> str:
    digest = hashlib.sha256(str(PACKAGE).encode())
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(file.relative_to(PACKAGE)).encode() + file.read_bytes())
    for point in entry_points(group="jaxdyn.claims"):
        digest.update(f"{point.value} {point.dist and point.dist.version}".encode())
    for path in load:
        file = Path(path).resolve()
        digest.update(str(file).encode() + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()[:20]


def catalogue(load: Sequence[str | Path] = ()) -> list[dict[str, Any]]:
    """What is known of every claim without running it, from the cache when no source has changed."""
    from jaxdyn.engine.cache import cache_dir

    file = cache_dir() / f"catalogue-{_source_key(load)}.json"
    try:
        return list(json.loads(file.read_text()))
    except (OSError, ValueError):
        entries = [_entry(claim) for claim in all_claims(load).values()]
    from jaxdyn.engine.store import atomic_write

    try:
        for old in file.parent.glob("catalogue-*.json"):
            old.unlink(missing_ok=True)
        atomic_write(file, json.dumps(entries))
    except (UsageError, OSError):
        pass  # a cache that cannot be written costs time only
    return entries
