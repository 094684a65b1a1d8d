"""The library of theories: title pages, papers, maps and folders, by prefix.

A theory is a package with ``THEORY`` in its ``__init__.py``: below ``jaxdyn.theories``, named by an installed ``jaxdyn.claims``
entry point, or in a user's own folder. Reading title pages imports neither JAX nor NumPy.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.engine.base.failure import let_through, unimportable
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.engine.catalogue.theory import AtlasMap, Paper, Theory
from jaxdyn.errors import UsageError

__all__ = [
    "HOME",
    "ClaimPackage",
    "Topic",
    "homes",
    "folder",
    "flagship",
    "installed",
    "instruments",
    "is_shipped",
    "load",
    "maps",
    "papers",
    "points",
    "recorded_folder",
    "shipped",
    "shown",
    "theory",
    "topics",
]

GROUP = "jaxdyn.claims"
HOME = "jaxdyn.theories"  # whose packages are found by their names: the engine knows none of them


class ClaimPackage(NamedTuple):
    """A module with claims, or the package of a theory.

    Args:
        name: its name in messages.
        module: the module, with ``THEORY``, ``CLAIMS`` or both.
        file: the module's file; a user's own as it was given.
    """

    name: str
    module: Any
    file: str

    @property
    def page(self) -> Theory | None:
        """Its title page, if it has one."""
        page = getattr(self.module, "THEORY", None)
        return page if isinstance(page, Theory) else None

    @property
    def prefix(self) -> str | None:
        """The prefix of all its claims, the folder's name; None unless it is a theory with topics."""
        return self.module.__name__.rpartition(".")[2] if self.page is not None and self.page.topic_names else None

    @property
    def prefixes(self) -> set[str]:
        """The prefixes that its title page covers."""
        return {self.prefix} if self.prefix else {claim.theory for claim in getattr(self.module, "CLAIMS", ())}


class Topic(NamedTuple):
    """A module with claims or instruments: its name for messages, its name on the title page, the module, and its file."""

    name: str
    topic: str | None
    module: Any
    file: str


_loaded: dict[Path, ClaimPackage] = {}  # a user's own packages, by file or folder


def shipped(names: Collection[str] | None = None) -> Iterator[ClaimPackage]:
    """The theories below ``jaxdyn.theories`` in alphabetical order: all, or those with these names (other names are ignored)."""
    if names is None:
        names = [info.name for info in pkgutil.iter_modules(importlib.import_module(HOME).__path__)]
    for name in sorted({name for name in names if is_shipped(name)}):
        module = importlib.import_module(f"{HOME}.{name}")
        yield ClaimPackage(name, module, str(module.__file__))


def flagship() -> str:
    """README's claim, ``FLAGSHIP`` of the package of theories."""
    return str(importlib.import_module(HOME).FLAGSHIP)


def points() -> Iterable[EntryPoint]:
    """Installed ``jaxdyn.claims`` entry points, without loading them."""
    return entry_points(group=GROUP)


def installed() -> Iterator[ClaimPackage]:
    """The modules and packages of installed entry points."""
    for point in points():
        try:
            module = point.load()
        except BaseException as error:  # a broken package must not disable the others
            let_through(error)
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"the claims of {point.value} are left out: it cannot be imported ({reason})", stacklevel=2)
            continue
        yield ClaimPackage(point.value, module, str(getattr(module, "__file__", None) or point.value))


def load(path: str | Path) -> ClaimPackage:
    """Load a user's own file with claims, or folder with a title page.

    Raises:
        UsageError: it is missing, cannot be imported, or another package has its name.
    """
    place = from_home(path).resolve()
    if place.is_dir() or place.name == "__init__.py":
        place = place if place.is_dir() else place.parent
        _loaded[place] = ClaimPackage(str(path), _package(place, str(path)), str(path))
    else:
        from jaxdyn.engine.base.reference import load_file

        _loaded[place] = ClaimPackage(str(path), load_file(from_home(path)), str(path))
    return _loaded[place]


def _package(folder: Path, shown: str) -> Any:
    """The package in a folder, imported under the folder's name."""
    if not (folder / "__init__.py").is_file():
        raise UsageError(f"{shown} is not allowed: a folder of claims has an __init__.py with THEORY")
    if str(folder.parent) not in sys.path:
        sys.path.append(str(folder.parent))  # worker processes get the same path
    module = _imported(folder.name, shown)
    if Path(module.__file__ or "").resolve().parent != folder:
        raise UsageError(f"{shown} is not allowed: another package is called {folder.name}")
    return module


def _imported(name: str, shown: str) -> Any:
    """Import a user's own module; an exception becomes one sentence."""
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise UsageError(f"{error.filename or shown}, line {error.lineno}: {error.msg}") from None
    except BaseException as error:
        let_through(error)
        raise unimportable(shown, error) from error


def topics(package: ClaimPackage) -> Iterator[Topic]:
    """The modules with claims: the topics of the title page, or else the module itself.

    Raises:
        UsageError: a topic that the package does not have.
    """
    if package.page is None or not package.page.topic_names:
        yield Topic(package.name, None, package.module, package.file)
        return
    for topic in package.page.topic_names:
        yield _part(package, "topic", topic)


def instruments() -> Iterator[Topic]:
    """The modules with instruments that title pages name, theory by theory.

    Raises:
        UsageError: a module that the package does not have.
    """
    packages = {package.module.__name__: package for package in _with_page()}  # one that is installed and loaded counts once
    for package in packages.values():
        for name in package.page.instruments if package.page is not None else ():
            yield _part(package, "instrument", name)


def _part(package: ClaimPackage, kind: str, listed: str) -> Topic:
    """A module that a title page lists, imported."""
    name = _module_of(f"{package.module.__name__}.{listed}")
    if name is None:
        raise UsageError(f"{kind} {listed!r} is not allowed: {package.name} has no module of that name")
    shipped_ = name.partition(".")[0] == "jaxdyn"
    module = importlib.import_module(name) if shipped_ else _imported(name, f"{package.name}.{listed}")
    return Topic(f"{package.name}.{listed}", listed, module, str(module.__file__))


def _module_of(topic: str) -> str | None:
    """The module with a topic's claims: the topic itself, or its module ``claims`` if it is a folder; None if missing."""
    for name in (topic, f"{topic}.claims"):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            return None
        if spec is None or spec.submodule_search_locations is None:
            return name if spec is not None else None
    return None


def is_shipped(prefix: str) -> bool:
    """Whether a theory below ``jaxdyn.theories`` has this prefix."""
    return any(Path(place, prefix, "__init__.py").is_file() for place in homes())


def homes() -> list[str]:
    """The folders with the theories of the package."""
    return list(importlib.import_module(HOME).__path__)


def _named(prefix: str) -> ClaimPackage | None:
    """The package of the theory with this prefix, if it has a title page."""
    if is_shipped(prefix):
        return next(shipped((prefix,)))
    others = (*_loaded.values(), *installed())
    return next((one for one in others if one.page is not None and prefix in one.prefixes), None)


def theory(prefix: str) -> Theory:
    """The title page of a theory; for claims without one, a page with their prefix as its title."""
    package = _named(prefix)
    return Theory(title=prefix) if package is None or package.page is None else package.page


def papers(prefix: str) -> tuple[Paper, ...]:
    """The papers of a theory; a bare number is looked up among those that other theories declare.

    Raises:
        UsageError: an arXiv number that no theory declares.
    """
    wanted = theory(prefix).papers
    if all(isinstance(paper, Paper) for paper in wanted):
        return tuple(paper for paper in wanted if isinstance(paper, Paper))
    declared = {p.arxiv: p for page in _pages() for p in page.papers if isinstance(p, Paper)}
    if missing := [str(paper) for paper in wanted if not isinstance(paper, Paper) and paper not in declared]:
        raise UsageError(f"papers={missing[0]!r} of {prefix} is not allowed: no theory declares a jd.Paper of that number")
    return tuple(paper if isinstance(paper, Paper) else declared[paper] for paper in wanted)


def folder(prefix: str) -> Path | None:
    """The folder of a theory; None for claims that have none, such as those of a single file."""
    package = _named(prefix)
    return Path(package.module.__file__).parent if package is not None and hasattr(package.module, "__path__") else None


def recorded_folder(prefix: str, kind: str) -> Path | None:
    """The folder of a theory's stored ``maps`` or ``studies``; None for claims without a folder."""
    place = folder(prefix)
    return None if place is None else place / "recorded" / kind


def maps(prefix: str | None = None) -> tuple[AtlasMap, ...]:
    """The maps of a theory, from the module ``maps`` in its folder, or those of all theories.

    Raises:
        UsageError: the module has no ``MAPS``, or one of them is of another theory's claim.
    """
    if prefix is None:
        return tuple(one for package in _with_page() if package.prefix for one in maps(package.prefix))
    package, place = _named(prefix), folder(prefix)
    if package is None or place is None or not (place / "maps.py").is_file():
        return ()
    declared = getattr(importlib.import_module(f"{package.module.__name__}.maps"), "MAPS", None)
    if not isinstance(declared, tuple) or not all(isinstance(one, AtlasMap) for one in declared):
        raise UsageError(f"{package.name}.maps has no MAPS tuple: put its jd.AtlasMap objects into a tuple of that name")
    if astray := [one.claim for one in declared if one.theory != prefix]:
        raise UsageError(f"claim={astray[0]!r} is not allowed: maps in {package.name} are of claims that start with {prefix}.")
    return declared


def shown() -> list[str]:
    """Ids of the claims whose figures the gallery shows, theory by theory."""
    return [name for page in _pages() for name in page.shown]


def _with_page() -> list[ClaimPackage]:
    return [package for package in (*shipped(), *installed(), *_loaded.values()) if package.page is not None]


def _pages() -> list[Theory]:
    return [package.page for package in _with_page() if package.page is not None]
