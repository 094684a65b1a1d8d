"""All claims by id: those of the library's theories, of a user's own files, and of installed ``jaxdyn.claims`` entry points.

The catalogue (printed by ``jaxdyn list``) is shipped with the package, as ``catalogue.json``, and used as long as its sources
have not changed; if they have, as in a checkout, its entries are cached in the user's cache folder. So listing imports neither JAX
nor any theory, and a selection imports only the theories that it needs. Claims in a user's own files and in installed packages are
imported every time. ``python -m jaxdyn.maintain shipped`` writes the shipped file.
"""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import hashlib
import importlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxdyn.engine.catalogue import library
from jaxdyn.engine.catalogue.library import ClaimPackage, Topic
from jaxdyn.engine.storage.cache import cache_dir, read_cached, write_cached
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.claims.claim import Claim

__all__ = ["all_claims", "catalogue", "home", "select", "select_ids", "topic", "write_shipped"]

PACKAGE = Path(__file__).parents[2]
THEORIES = PACKAGE / "theories"
SHIPPED = Path(__file__).parents[1] / "catalogue.json"
DECIDES = (
    *("catalogue/library", "catalogue/registry", "catalogue/theory", "claims/claim", "claims/contract", "claims/description"),
    *("claims/edits", "claims/fields", "claims/grid", "claims/ranges", "claims/setting", "claims/study"),
)  # modules of the engine on which the entries of a catalogue depend


class Located(NamedTuple):
    """A claim, the file with its ``CLAIMS``, and its topic if its theory has topics."""

    claim: Claim
    file: str
    topic: str | None


_located: dict[str, Located] = {}  # all claims collected in this process, by id


def _others(load: Sequence[str | Path]) -> Iterator[ClaimPackage]:
    check_load(load)
    yield from library.installed()
    yield from map(library.load, load)


def check_load(load: Any) -> None:
    """Refuse anything but a list of paths.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(load, str | Path) or not isinstance(load, Iterable) or not all(isinstance(path, str | Path) for path in load):
        raise UsageError(f"load={load!r:.60} is not allowed: it is a list of the paths of files or folders with claims")


def _collect(packages: Iterable[ClaimPackage]) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    for package in packages:
        for topic in library.topics(package):
            for claim in _claims(topic, package.prefix):
                if claim.id in claims:
                    raise _twins(claim.id, topic.name)
                claims[claim.id] = claim
                _located[claim.id] = Located(claim, _from_root(topic), topic.topic)
    return claims


def _claims(topic: Topic, prefix: str | None) -> Sequence[Claim]:
    """The claims of a topic, whose ids must start with their folder's prefix or with that of a shipped theory."""
    from jaxdyn.engine.claims.claim import Claim

    claims = getattr(topic.module, "CLAIMS", None)
    if not isinstance(claims, list | tuple) or not all(isinstance(c, Claim) for c in claims):
        raise UsageError(f"{topic.name} has no CLAIMS list: put its jd.Claim objects into a list of that name")
    if not claims:
        raise UsageError(f"{topic.name} has no claims: its CLAIMS list is empty")
    if astray := [c.id for c in claims if prefix and c.theory != prefix and not library.is_shipped(c.theory)]:
        raise UsageError(f"id={astray[0]!r} is not allowed: ids of claims in {topic.name} start with {prefix}.")
    return claims


def _twins(name: str, where: str) -> UsageError:
    return UsageError(f"two claims are called {name}; the second is in {where}")


def _from_root(topic: Topic) -> str:
    """The file of a topic, relative to the folder of the package; a user's own file as it was given."""
    file = Path(topic.file)
    ours = topic.topic is not None and file.is_relative_to(PACKAGE.parent)
    return file.relative_to(PACKAGE.parent).as_posix() if ours else topic.file


def home(claim: Claim) -> str | None:
    """The file of a claim, relative to the package's root for jaxdyn's own; None for a claim made at a prompt."""
    located = _located.get(claim.id)
    if located is not None and located.claim is claim:
        return located.file
    from jaxdyn.engine.base.failure import shown_path, source_file

    file = source_file(claim.judge)
    return None if file is None or file.startswith("<") else shown_path(file)


def topic(claim: Claim) -> str | None:
    """The topic of a claim, as named on its theory's title page; None for a claim outside a theory."""
    located = _located.get(claim.id)
    return located.topic if located is not None and located.claim is claim else None


def all_claims(load: Sequence[str | Path] = (), theories: Collection[str] | None = None) -> dict[str, Claim]:
    """All claims by id.

    Args:
        load: files or folders with a user's own claims.
        theories: names of the theories to import; None: all.

    Raises:
        UsageError: a module without a ``CLAIMS`` list, or two claims with one id.
    """
    return _collect(chain(library.shipped(theories), _others(load)))


def check_claim(claim: Any) -> None:
    """Refuse anything that is neither a claim nor an id.

    Raises:
        UsageError: for anything else.
    """
    from jaxdyn.engine.claims.claim import Claim

    if not isinstance(claim, str | Claim):
        raise UsageError(f"claim={claim!r:.60} is not allowed: it is an id, or a jd.Claim")


def select_ids(ids: Iterable[str], patterns: Sequence[str], own: Sequence[str] = ()) -> list[str]:
    """The ids that match any of the shell-style patterns, or all ids without patterns; ``own`` are those of the user's files.

    Raises:
        UsageError: a pattern that matches nothing.
    """
    known = list(ids)
    chosen: dict[str, None] = {}
    for pattern in patterns or ("*",):
        hits = [i for i in known if fnmatch.fnmatchcase(i, pattern) or i.split(".")[0] == pattern]
        if not hits:
            near = _nearest(pattern, known)
            theory, theories = pattern.split(".")[0], sorted({i.split(".")[0] for i in known})
            there = f"theories are: {', '.join(theories)}"
            there = f"`jaxdyn list {theory}` shows those of {theory}" if theory in theories else there
            hint = f"did you mean {', '.join(near)}?" if near else there
            yours = (
                f"your own are {', '.join(own[:3])}{' …' * (len(own) > 3)}" if own else "those of your own file need --load FILE"
            )
            raise UsageError(f"no claim matches {pattern!r}; {hint} (`jaxdyn list` shows all; {yours})")
        chosen |= dict.fromkeys(hits)
    return list(chosen)


def _nearest(pattern: str, known: Sequence[str]) -> list[str]:
    """The ids that a misspelt one may mean: those of its theory with a similar name, if there is such a theory; or theories."""
    theory, _, name = pattern.partition(".")
    of_theory = {i.partition(".")[2]: i for i in known if i.partition(".")[0] == theory}
    if of_theory:
        return [of_theory[near] for near in difflib.get_close_matches(name, of_theory, 3)]
    theories = [] if name else difflib.get_close_matches(theory, {i.partition(".")[0] for i in known}, 3)
    return theories or difflib.get_close_matches(pattern, known, 3)


def select(patterns: Sequence[str], load: Sequence[str | Path] = ()) -> list[Claim]:
    """The claims that match any of the patterns; only their theories are imported.

    Without patterns they are those of the files in ``load``, or, without files, all.

    Raises:
        UsageError: a pattern that matches nothing, or a file that cannot be used.
    """
    theories = {pattern.split(".")[0] for pattern in patterns}
    check_load(load)
    if load and not patterns:
        own = _collect(map(library.load, load))
        claims = all_claims(load, set(filter(library.is_shipped, {i.split(".")[0] for i in own})))  # refuses an id of another claim
        return [claims[i] for i in own]
    if patterns and all(map(library.is_shipped, theories)):
        claims = all_claims(load, theories)
        if all(pattern in claims for pattern in patterns):  # ids: without a catalogue, which takes a checkout seconds to make
            return [claims[i] for i in dict.fromkeys(patterns)]
    homes = {entry["id"]: Path(entry["home"]).parts for entry in _of_theories()}
    others = _collect(_others(load))
    ids = select_ids([*homes, *others], patterns, list(others) if load else ())
    root = THEORIES.relative_to(PACKAGE.parent).parts
    shipped = {homes[i][len(root)] for i in ids if i in homes and homes[i][: len(root)] == root}
    claims = all_claims(load, shipped if all(homes[i][: len(root)] == root for i in ids if i in homes) else None)
    return [claims[i] for i in ids]


def _entry(claim: Claim) -> dict[str, Any]:
    from jaxdyn.engine.claims.contract import provenance
    from jaxdyn.engine.claims.description import tested
    from jaxdyn.engine.claims.grid import field_table

    grid = claim.grid("quick")
    return {
        "id": claim.id,
        "theory": claim.theory,
        "counted": claim.counted,
        "theory_title": library.theory(claim.theory).title,
        "papers": [paper.arxiv for paper in library.papers(claim.theory)],
        "topic": topic(claim),
        "title": claim.title,
        "statement": claim.statement,
        "tested": tested(claim, grid, claim.seeds),
        "source": claim.source,
        "evidence": claim.evidence,
        "expected": claim.expected,
        "assumes": [str(a) for a in claim.assumes],
        "bounds": provenance(claim.bounds),
        "printed": claim.printed,
        "talks": list(claim.talks),
        "recorded": claim.records,
        "controls": list(claim.controls),
        "rivals": list(claim.rivals),
        "fields": field_table(grid),
        "runs": {s: len(claim.grid(s).cells()) * claim.seed_count(s) for s in ("quick", "paper")},
        "home": home(claim),
    }


def make_entries(packages: Iterable[ClaimPackage]) -> list[dict[str, Any]]:
    """Catalogue entries for all claims of these packages."""
    return [_entry(claim) for claim in _collect(packages).values()]


def _hash(files: Iterable[Path], *facts: str) -> str:
    """Hash of files and facts, independent of the system's line endings."""
    digest = hashlib.sha256(repr(facts).encode())
    for file in files:
        name = file.relative_to(PACKAGE).as_posix() if file.is_relative_to(PACKAGE) else str(file)
        digest.update(name.encode() + (file.read_bytes().replace(b"\r\n", b"\n") if file.is_file() else b""))
    return digest.hexdigest()[:20]


def _engine_files() -> list[Path]:
    return [PACKAGE / "engine" / f"{name}.py" for name in DECIDES]


def theories_key() -> str:
    """Hash of the theories' sources and the engine's modules behind a catalogue; a catalogue with another hash is not used."""
    folders = [Path(path) for path in importlib.import_module(library.HOME).__path__]
    facts = [str(folder) for folder in folders if folder != THEORIES]
    return _hash([*_engine_files(), *sorted(f for folder in folders for f in folder.rglob("*.py"))], *facts)


def _cached(kind: str, key: str, packages: Iterable[ClaimPackage]) -> list[dict[str, Any]]:
    """Entries from the user's cache; made and stored there if missing."""
    name = f"catalogue-{kind}-{key}.jsonl"
    known: list[dict[str, Any]] | None = read_cached(name)
    if known is None:
        known = make_entries(packages)
        for old in cache_dir().glob(f"catalogue-{kind}-*.jsonl"):
            with contextlib.suppress(OSError):
                old.unlink()
        write_cached(name, known)
    return known


def _of_theories() -> list[dict[str, Any]]:
    key = theories_key()
    try:
        shipped = json.loads(SHIPPED.read_text(encoding="utf-8"))
        if shipped["sources"] == key:
            claims: list[dict[str, Any]] = shipped["claims"]
            return claims
    except (OSError, ValueError, KeyError, TypeError):
        pass  # a checkout has no shipped catalogue
    return _cached("theories", key, library.shipped())


def catalogue(load: Sequence[str | Path] = ()) -> list[dict[str, Any]]:
    """An entry per claim with everything known without running it; imports the claims that are not the package's own.

    Raises:
        UsageError: a module without a ``CLAIMS`` list, or two claims with one id.
    """
    check_load(load)
    entries = _of_theories()
    known = {entry["id"] for entry in entries}
    for entry in make_entries(_others(load)):  # never cached: what a file reads while it is imported is not known
        if entry["id"] in known:
            raise _twins(entry["id"], entry["home"])
        entries = [*entries, entry]
    return entries


def write_shipped(target: Path = SHIPPED) -> int:
    """Write the catalogue that is shipped with the package; returns the number of claims."""
    from jaxdyn.engine.storage.store import atomic_write

    entries = make_entries(library.shipped())
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)  # one claim per line, for readable diffs
    atomic_write(target, f'{{"sources": "{theories_key()}", "claims": [\n{lines}\n]}}\n')
    return len(entries)
