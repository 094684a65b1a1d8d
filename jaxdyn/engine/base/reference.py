"""References to functions and classes that travel to other processes.

A user's own file is imported under a name of its own, but the modules next to it that it imports, its helpers, have the names that
it gives them, of which a process holds one module each. So a helper whose name another file has already is refused, and a helper
that has changed is imported anew.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import sys
import types
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.engine.base.failure import PACKAGE, installed, let_through
from jaxdyn.errors import UsageError, shown

__all__ = ["Ref", "forget_cached", "load_file", "packaged", "ref_to", "resolve"]


@dataclass(frozen=True)
class Ref:
    """``module:qualname``, and the file of a module that is not installed (a user's own).

    ``version`` is that of such a file: workers that have met another import it anew.
    """

    module: str
    qualname: str
    path: str | None = None
    version: str = ""

    @property
    def title(self) -> str:
        """What people call it: a user's own file goes by its name, whatever its content."""
        return f"{Path(self.path).stem if self.path else self.module}:{self.qualname}"

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


class Own(NamedTuple):
    """A user's own file, or a helper: where it is, and a hash of its content and of what it imports from its folder."""

    file: Path
    version: str


CACHED = type(functools.cache(len))

objects: dict[Ref, Any] = {}  # objects of this process, so that notebooks' functions need no file
_folders: set[Path] = set()  # of user files: modules next to them are found by path, since workers lack them on sys.path
own_modules: dict[str, Own] = {}  # user files and their helpers, by the names of their modules


def load_file(path: str | Path) -> Any:
    """Import a user's own file as a module (once per path and content, that of its helpers included).

    Raises:
        UsageError: the file is missing, no Python, or raises while it is imported; or one of its helpers has the name of another
            module.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"{path}: no such file; --load takes the path of a Python file with a CLAIMS list")
    content = file.read_bytes()
    digest = hashlib.sha256(str(file).encode(errors="replace") + content).hexdigest()[:12]
    name = f"jaxdyn_user_{file.stem.replace('-', '_').replace('.', '_')}_{digest}"
    helpers = _helpers_of(file)
    own = {name: helpers.pop(""), **helpers}
    if name in sys.modules and own_modules.get(name, own[name]) == own[name]:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise UsageError(f"{path}: not a Python file (its name must end in .py)")
    _refuse_shared(helpers)
    _refuse_borrowed(file, helpers)
    _drop_changed(own)
    module = _executed(spec, content, path)
    _refuse_hidden(helpers, name)
    own_modules.update(own)
    return module


def _executed(spec: Any, content: bytes, path: str | Path) -> Any:
    """The module of a user's file with this content, whatever was compiled before; its helpers are found by their folder."""
    module, folder = importlib.util.module_from_spec(spec), Path(spec.origin).parent
    sys.modules[spec.name] = module
    _folders.add(folder)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        exec(spec.loader.source_to_code(content, spec.origin), module.__dict__)
    except SyntaxError as error:
        del sys.modules[spec.name]
        raise UsageError(f"{error.filename or path}, line {error.lineno}: {error.msg}") from None
    except BaseException as error:
        let_through(error)
        del sys.modules[spec.name]
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(folder))
    return module


def _helpers_of(file: Path) -> dict[str, Own]:
    """A file, under the name "", and its helpers: what it imports from its folder, directly or not, inside functions as well."""
    places, direct, todo = {"": file}, dict[str, dict[str, Path]](), [""]
    while todo:
        name = todo.pop()
        direct[name] = _direct(places[name], name, file.parent)
        new = {inner: place for inner, place in direct[name].items() if inner not in places}
        places |= new
        todo += new
    contents = {name: hashlib.sha256(_content(place)).hexdigest() for name, place in places.items()}
    versions = {name: repr(sorted((inner, contents[inner]) for inner in _reached(direct, name))) for name in places}
    return {name: Own(place, hashlib.sha256(versions[name].encode()).hexdigest()[:12]) for name, place in places.items()}


def _direct(file: Path, name: str, folder: Path) -> dict[str, Path]:
    """The modules in a folder that a file imports itself, and the packages around them."""
    found: dict[str, Path] = {}
    for parts in (imported.split(".") for imported in _imports(file, name) if imported.split(".")[0] != "jaxdyn"):
        for prefix in (parts[: i + 1] for i in range(len(parts))):
            path = folder.joinpath(*prefix)
            files = (path / "__init__.py", path.with_name(f"{path.name}.py"))  # in Python's order
            found |= {".".join(prefix): place.resolve() for place in [p for p in files if p.is_file()][:1]}
    return found


def _reached(direct: dict[str, dict[str, Path]], name: str) -> set[str]:
    """A module and all that it imports, directly or not."""
    reached, todo = {name}, [name]
    while todo:
        new = direct[todo.pop()].keys() - reached
        reached |= new
        todo += new
    return reached


def _imports(file: Path, name: str) -> tuple[str, ...]:
    """Names of the modules that a file of this name imports; none where it is no Python, which importing it will say."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    return _imported(_content(file), tuple(package))


@functools.lru_cache(1000)
def _imported(content: bytes, package: tuple[str, ...]) -> tuple[str, ...]:
    """The same of a file's content, for a module of this package."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):
        return ()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in (node for node in nodes if isinstance(node, ast.ImportFrom) and (package or not node.level)):
        outer = package[: len(package) - node.level + 1] if node.level else ()
        base = ".".join([*outer, *filter(None, [node.module])])
        names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(dict.fromkeys(filter(None, names)))


def _content(file: Path) -> bytes:
    """The content of a file, nothing where it cannot be read, which importing it will say."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _refuse_shared(helpers: dict[str, Own]) -> None:
    """Refuse helpers whose names other modules have: Python would give the file those, without a word."""
    for name, own in helpers.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        others = [own_modules[name].file] if name in own_modules else []
        for other in [*others, *([Path(loaded).resolve()] if isinstance(loaded, str) else [])]:
            if other != own.file:
                raise UsageError(_both(name, own.file, other))


def _refuse_borrowed(file: Path, helpers: dict[str, Own]) -> None:
    """Refuse a file that imports from elsewhere what has the name of another file's helper: it would be given that."""
    sources = {"": file} | {name: own.file for name, own in helpers.items()}
    imported = {top.split(".")[0] for name, place in sources.items() for top in _imports(place, name)}
    for name in sorted(imported & own_modules.keys() - helpers.keys()):
        place, other = _on_path(name), own_modules[name].file
        if place is None:
            raise UsageError(f"{file} imports {name!r}, which is not next to it: this process has {other} under that name")
        if place != other:
            raise UsageError(_both(name, place, other))


def _refuse_hidden(helpers: dict[str, Own], module: str) -> None:
    """Refuse helpers that are imported later, inside a function, if Python would then find another module of that name."""
    for name in (name for name in helpers if name not in sys.modules and "." not in name):
        if (place := _on_path(name)) not in (None, helpers[name].file):
            del sys.modules[module]
            raise UsageError(_both(name, helpers[name].file, place))


def _on_path(name: str) -> Path | None:
    """The file that Python finds for the name of a module, wherever it is imported."""
    spec = PathFinder.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve()


def _both(name: str, own: Path, other: Path | None) -> str:
    return f"{own} and {other} are both imported as {name!r}, and a process holds one module of a name: rename one of them"


def _drop_changed(found: dict[str, Own]) -> None:
    """Forget modules that were imported in another version, so that they are imported anew."""
    for name, own in found.items():
        if own_modules.get(name, own) != own:
            for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
                del sys.modules[known]  # of a package all modules: without it they would be found as they were
            outer, _, last = name.rpartition(".")
            vars(sys.modules.get(outer, types.ModuleType(""))).pop(last, None)
            with contextlib.suppress(OSError):  # a compiled file is told from its source by the second only
                Path(importlib.util.cache_from_source(str(own.file))).unlink()


def ref_to(thing: Any) -> Ref:
    """The reference of a module-level function or class.

    Raises:
        UsageError: a nested function, lambda or method, or what is no function: other processes could not find it.
    """
    name, home = getattr(thing, "__qualname__", None), getattr(thing, "__module__", None)
    if not (callable(thing) and isinstance(name, str) and isinstance(home, str)) or isinstance(thing, types.MethodType):
        allowed = "a function at the top level of a module, so that worker processes can import it"
        raise UsageError(f"{shown(thing)} is not allowed: it must be {allowed}")
    if "<" in name:
        raise UsageError(f"{name} must be defined at the top level of a module, so that worker processes can import it")
    path = getattr(sys.modules.get(home), "__file__", None)
    own_file = home == "__main__" or home.startswith("jaxdyn_user_")
    own_file = own_file or (bool(_folders) and path is not None and Path(path).resolve().parent in _folders)
    place = Path(path).resolve() if own_file and path else None
    version = own_modules[home].version if place is not None and home in own_modules else ""
    ref = Ref(home, name, str(place) if place else None, version)
    objects[ref] = thing
    return ref


def resolve(ref: Ref) -> Any:
    """The object behind a reference, imported if this process has not met it."""
    if ref in objects:
        return objects[ref]
    module = load_file(ref.path) if ref.path else importlib.import_module(ref.module)
    objects[ref] = functools.reduce(getattr, ref.qualname.split("."), module)
    return objects[ref]


def packaged(ref: Ref) -> bool:
    """Whether something is jaxdyn's own."""
    return ref.module.partition(".")[0] == PACKAGE.name


def forget_cached(ref: Ref) -> None:
    """Empty the ``functools.cache`` of the functions in a module and in those of people's own that it uses.

    What they hold may be older than a global that was set since; a worker, which imports the modules anew, would not have it.
    """
    met, todo = set[str](), [ref.module]
    while todo:
        name = todo.pop()
        module = sys.modules.get(name)
        if name in met or module is None or not _is_own(module):
            continue
        met.add(name)
        for value in list(vars(module).values()):
            if isinstance(value, CACHED):
                value.cache_clear()
            home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            todo += [home] if isinstance(home, str) else []


def _is_own(module: types.ModuleType) -> bool:
    """Whether a module is neither jaxdyn's nor installed nor Python's own."""
    file, top = getattr(module, "__file__", None), module.__name__.partition(".")[0]
    if top == PACKAGE.name or top in sys.stdlib_module_names - {"__main__"}:
        return False
    return not (isinstance(file, str) and installed(Path(file)))
