"""Where claims are found: the packages under ``jaxdyn.theories``, a user's own files, and installed ``jaxdyn.claims`` entry points.

A package has a title page, ``THEORY``, which names its topics; every topic has a ``CLAIMS`` tuple. A single file needs that alone.

The catalogue (what ``jaxdyn list`` prints) is shipped with the package, as ``catalogue.json``, and used as long as no source
behind it has changed; what is not shipped is cached in the user's cache folder. So listing imports neither JAX nor any
theory, and a selection imports only the theories that it needs. ``python -m jaxdyn.maintain shipped`` writes the shipped file.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import importlib
import importlib.util
import json
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxdyn.engine.theory import Paper, Theory
from jaxdyn.errors import UsageError

if TYPE_CHECKING:
    from jaxdyn.engine.claim import Claim

__all__ = ["all_claims", "catalogue", "home", "papers", "select", "select_ids", "shown", "theory", "write_shipped"]

PACKAGE = Path(__file__).parents[1]
THEORIES = PACKAGE / "theories"
SHIPPED = Path(__file__).with_name("catalogue.json")
DECIDES = (
    "claim",
    "contract",
    "edits",
    "ranges",
    "registry",
    "setting",
    "study",
    "theory",
)  # on which a catalogue's entries depend


class Source(NamedTuple):
    """A module with claims: its name for messages, the module, and its file where there are no topics."""

    name: str
    module: Any
    file: str


_homes: dict[str, tuple[Claim, str]] = {}  # of all claims met in this process, by id
_pages: dict[str, Theory] = {}  # title pages met in this process, by prefix


def _packages() -> Iterator[str]:
    for info in pkgutil.iter_modules(importlib.import_module("jaxdyn.theories").__path__):
        yield info.name


def _theories(names: Collection[str] | None = None) -> Iterator[Source]:
    for name in sorted(_packages() if names is None else names):
        module = importlib.import_module(f"jaxdyn.theories.{name}")
        yield Source(name, module, str(module.__file__))


def _installed() -> Iterator[Source]:
    for point in entry_points(group="jaxdyn.claims"):
        module = point.load()
        yield Source(point.value, module, str(getattr(module, "__file__", None) or point.value))


def _others(load: Sequence[str | Path]) -> Iterator[Source]:
    yield from _installed()
    if load:
        from jaxdyn.engine.reference import load_file

        for path in load:
            yield Source(str(path), load_file(path), str(path))


def _topics(source: Source) -> Iterator[Source]:
    """The modules with claims: those that the title page names, or the module itself."""
    page = getattr(source.module, "THEORY", None)
    if page is None or not page.topic_names:
        yield source
        return
    for topic in page.topic_names:
        name = f"{source.module.__name__}.{topic}"
        found = importlib.util.find_spec(name)
        if found is None:
            raise UsageError(f"topic {topic!r} is not allowed: {source.name} has no module of that name")
        module = importlib.import_module(f"{name}.claims" if found.submodule_search_locations is not None else name)
        yield Source(f"{source.name}.{topic}", module, _from_root(Path(str(module.__file__))))


def _collect(sources: Iterable[Source]) -> dict[str, Claim]:
    from jaxdyn.engine.claim import Claim

    found: dict[str, Claim] = {}
    for source in sources:
        page = getattr(source.module, "THEORY", None)
        prefix = source.module.__name__.rpartition(".")[2] if page is not None and page.topic_names else None
        for topic in _topics(source):
            claims = getattr(topic.module, "CLAIMS", None)
            if not isinstance(claims, list | tuple) or not all(isinstance(c, Claim) for c in claims):
                raise UsageError(f"{topic.name} has no CLAIMS list: put its jd.Claim objects into a list of that name")
            for claim in claims:
                if claim.id in found:
                    raise _twins(claim.id, topic.name)
                found[claim.id] = claim
                _homes[claim.id] = claim, topic.file
                if page is not None:
                    _pages[prefix or claim.theory] = page
    return found


def theory(prefix: str) -> Theory:
    """The title page of a theory; claims without one have their prefix for a title."""
    if prefix not in _pages:
        installed = {source.module.__name__.rpartition(".")[2]: source for source in _installed()}
        known = {**installed, **{source.name: source for source in _theories(set(_packages()) & {prefix})}}
        page = getattr(known[prefix].module, "THEORY", None) if prefix in known else None
        return page or Theory(title=prefix)
    return _pages[prefix]


def papers(prefix: str) -> tuple[Paper, ...]:
    """The papers of a theory; a bare number is looked up among those that other theories declare.

    Raises:
        UsageError: a number that no theory declares.
    """
    wanted = theory(prefix).papers
    if all(isinstance(paper, Paper) for paper in wanted):
        return tuple(paper for paper in wanted if isinstance(paper, Paper))
    pages = [*_pages.values(), *(getattr(s.module, "THEORY", None) for s in (*_theories(), *_installed()))]
    declared = {p.arxiv: p for page in pages if page is not None for p in page.papers if isinstance(p, Paper)}
    if missing := [str(paper) for paper in wanted if not isinstance(paper, Paper) and paper not in declared]:
        raise UsageError(f"papers={missing[0]!r} of {prefix} is not allowed: no theory declares a jd.Paper of that number")
    return tuple(paper if isinstance(paper, Paper) else declared[paper] for paper in wanted)


def shown() -> list[str]:
    """The claims whose figures the gallery shows, theory by theory."""
    pages = [getattr(source.module, "THEORY", None) for source in (*_theories(), *_installed())]
    return [name for page in pages if page is not None for name in page.shown]


def _twins(name: str, where: str) -> UsageError:
    return UsageError(f"two claims are called {name}; the second is in {where}")


def _from_root(file: Path) -> str:
    """A path from the folder that holds the package; another one as it is."""
    return file.relative_to(PACKAGE.parent).as_posix() if file.is_relative_to(PACKAGE.parent) else str(file)


def home(claim: Claim) -> str | None:
    """The file of a claim, from the package's root where it is one of jaxdyn's; None for a claim that was made at a prompt."""
    known = _homes.get(claim.id)
    if known is not None and known[0] is claim:
        return known[1]
    from jaxdyn.engine.failure import shown_path, source_file

    file = source_file(claim.judge)
    return None if file is None or file.startswith("<") else shown_path(file)


def all_claims(load: Sequence[str | Path] = (), theories: Collection[str] | None = None) -> dict[str, Claim]:
    """All claims by id.

    Args:
        load: files with claims of a user's own.
        theories: folders of theories to import; None: all.

    Raises:
        UsageError: a module without a ``CLAIMS`` list, or two claims with one id.
    """
    return _collect(source for sources in (_theories(theories), _others(load)) for source in sources)


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
    """The claims that match any of the patterns; only their theories are imported.

    Raises:
        UsageError: a pattern that matches nothing, or a file that cannot be used.
    """
    homes = {entry["id"]: Path(entry["home"]).parts for entry in _of_theories()}
    ids = select_ids([*homes, *_collect(_others(load))], patterns)
    root = THEORIES.relative_to(PACKAGE.parent).parts
    shipped = {homes[i][len(root)] for i in ids if i in homes and homes[i][: len(root)] == root}
    claims = all_claims(load, shipped if all(homes[i][: len(root)] == root for i in ids if i in homes) else None)
    return [claims[i] for i in ids]


def _entry(claim: Claim) -> dict[str, Any]:
    from jaxdyn.engine.contract import provenance
    from jaxdyn.engine.setting import field_table

    grid = claim.grid("quick")
    return {
        "id": claim.id,
        "theory": claim.theory,
        "statement": claim.statement,
        "source": claim.source,
        "evidence": claim.evidence,
        "expected": claim.expected,
        "assumes": [str(a) for a in claim.assumes],
        "bounds": provenance(claim.bounds),
        "printed": claim.printed,
        "found": None if claim.found is None else {name: list(ends) for name, ends in claim.found.items()},
        "controls": list(claim.controls),
        "rivals": list(claim.rivals),
        "fields": field_table(grid),
        "runs": {s: len(claim.grid(s).cells()) * claim.seed_count(s) for s in ("quick", "paper")},
        "home": home(claim),
    }


def _entries(sources: Iterable[Source]) -> list[dict[str, Any]]:
    return [_entry(claim) for claim in _collect(sources).values()]


def _hash(files: Iterable[Path], *facts: str) -> str:
    """Of files and facts; the same on systems that end lines differently."""
    digest = hashlib.sha256(repr(facts).encode())
    for file in files:
        name = file.relative_to(PACKAGE).as_posix() if file.is_relative_to(PACKAGE) else str(file)
        digest.update(name.encode() + (file.read_bytes().replace(b"\r\n", b"\n") if file.is_file() else b""))
    return digest.hexdigest()[:20]


def _engine_files() -> list[Path]:
    return [PACKAGE / "engine" / f"{name}.py" for name in DECIDES]


def _theories_key() -> str:
    theories = importlib.import_module("jaxdyn.theories")

    folders = [Path(path) for path in theories.__path__]
    facts = [str(folder) for folder in folders if folder != THEORIES]
    return _hash([*_engine_files(), *sorted(f for folder in folders for f in folder.rglob("*.py"))], *facts)


def _cached(kind: str, key: str, sources: Iterable[Source]) -> list[dict[str, Any]]:
    """Entries from the user's cache, made and kept there if need be."""
    from jaxdyn.engine.cache import cache_dir

    file = cache_dir() / f"catalogue-{kind}-{key}.json"
    try:
        known: list[dict[str, Any]] = json.loads(file.read_text())
        return known
    except (OSError, ValueError):
        entries = _entries(sources)
    from jaxdyn.engine.store import atomic_write

    try:
        for old in file.parent.glob(f"catalogue-{kind}-*.json"):
            old.unlink(missing_ok=True)
        atomic_write(file, json.dumps(entries))
    except (UsageError, OSError):
        pass  # a cache that cannot be written costs time only
    return entries


def _of_theories() -> list[dict[str, Any]]:
    key = _theories_key()
    try:
        shipped = json.loads(SHIPPED.read_text(encoding="utf-8"))
        if shipped["sources"] == key:
            claims: list[dict[str, Any]] = shipped["claims"]
            return claims
    except (OSError, ValueError, KeyError, TypeError):
        pass  # sources that are being changed have no shipped catalogue
    return _cached("theories", key, _theories())


def catalogue(load: Sequence[str | Path] = ()) -> list[dict[str, Any]]:
    """What is known of every claim without running it; imports what is neither shipped nor cached.

    Raises:
        UsageError: a module without a ``CLAIMS`` list, or two claims with one id.
    """
    entries = _of_theories()
    points = [f"{point.value} {point.dist and point.dist.version}" for point in entry_points(group="jaxdyn.claims")]
    if points or load:
        files = [file for path in load for file in (Path(path).resolve(), *sorted(Path(path).resolve().parent.glob("*.py")))]
        known = {entry["id"] for entry in entries}
        others = _cached("others", _hash([*_engine_files(), *files], *points, *map(str, load)), _others(load))
        for entry in others:
            if entry["id"] in known:
                raise _twins(entry["id"], entry["home"])
        entries = [*entries, *others]
    return entries


def write_shipped(target: Path = SHIPPED) -> int:
    """Write the catalogue that is shipped with the package; returns the number of claims."""
    from jaxdyn.engine.store import atomic_write

    entries = _entries(_theories())
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)  # a claim a line, to be compared
    atomic_write(target, f'{{"sources": "{_theories_key()}", "claims": [\n{lines}\n]}}\n')
    return len(entries)
