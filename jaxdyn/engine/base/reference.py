"""References to functions and classes that travel to other processes.

A user's own file is imported under a unique name. Its helpers, the modules next to it that it imports, keep their names, and a
process has one module per name. So a helper is refused if another file is already imported under its name, and imported anew if it
has changed.
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
    """A reference ``module:qualname``; ``path`` is the module's file if it is a user's own, not installed.

    ``version`` identifies the content of such a file: workers that have imported another version import it anew.
    """

    module: str
    qualname: str
    path: str | None = None
    version: str = ""

    @property
    def title(self) -> str:
        """A readable name; a user's own file is named without a hash of its content."""
        return f"{Path(self.path).stem if self.path else self.module}:{self.qualname}"

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


class Own(NamedTuple):
    """A user's own file, or a helper: its path, and a hash of its content and of its imports from its folder."""

    file: Path
    version: str


CACHED = type(functools.cache(len))

objects: dict[Ref, Any] = {}  # objects of this process, so that notebooks' functions need no file
_folders: set[Path] = set()  # of user files: modules in them are found by path, since workers lack the folders on sys.path
own_modules: dict[str, Own] = {}  # user files and their helpers, by the names of their modules


def load_file(path: str | Path) -> Any:
    """Import a user's own file as a module (once per path and content, that of its helpers included).

    Raises:
        UsageError: the file is missing, is not Python, or raises while it is imported; or one of its helpers has the name of
            another module.
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
    """Execute a user's file with this content, not an older compiled one, with its folder on the path; returns the module."""
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
    """A file, under the name "", and its helpers: modules of its folder that it imports, also indirectly or inside functions."""
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
    """The modules in a folder that a file imports directly, and the packages around them."""
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
    """Names of the modules that the file of a module imports; none if it is not Python, which importing it will report."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    return _imported(_content(file), tuple(package))


@functools.lru_cache(1000)
def _imported(content: bytes, package: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the modules that code imports, as a module of this package."""
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
    """The content of a file; empty if it cannot be read, which importing it will report."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _refuse_shared(helpers: dict[str, Own]) -> None:
    """Refuse helpers whose names other modules have: Python would silently import those."""
    for name, own in helpers.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        others = [own_modules[name].file] if name in own_modules else []
        for other in [*others, *([Path(loaded).resolve()] if isinstance(loaded, str) else [])]:
            if other != own.file:
                raise UsageError(_both(name, own.file, other))


def _refuse_borrowed(file: Path, helpers: dict[str, Own]) -> None:
    """Refuse a file that imports a module from elsewhere under the name of another file's helper: it would get the helper."""
    sources = {"": file} | {name: own.file for name, own in helpers.items()}
    imported = {top.split(".")[0] for name, place in sources.items() for top in _imports(place, name)}
    for name in sorted(imported & own_modules.keys() - helpers.keys()):
        place, other = _on_path(name), own_modules[name].file
        if place is None:
            raise UsageError(f"{file} imports {name!r}, which is not next to it: this process has {other} under that name")
        if place != other:
            raise UsageError(_both(name, place, other))


def _refuse_hidden(helpers: dict[str, Own], module: str) -> None:
    """Refuse helpers that are imported later, inside a function, if Python would find another module of that name then."""
    for name in (name for name in helpers if name not in sys.modules and "." not in name):
        if (place := _on_path(name)) not in (None, helpers[name].file):
            del sys.modules[module]
            raise UsageError(_both(name, helpers[name].file, place))


def _on_path(name: str) -> Path | None:
    """The file that Python finds for a module's name on ``sys.path``; None if there is none."""
    spec = PathFinder.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve()


def _both(name: str, own: Path, other: Path | None) -> str:
    return f"{own} and {other} are both imported as {name!r}, and a process holds one module of a name: rename one of them"


def _drop_changed(found: dict[str, Own]) -> None:
    """Forget modules that were imported in another version, so that they are imported again."""
    for name, own in found.items():
        if own_modules.get(name, own) != own:
            for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
                del sys.modules[known]  # with all its modules, if it is a package: they would stay in the old version
            outer, _, last = name.rpartition(".")
            vars(sys.modules.get(outer, types.ModuleType(""))).pop(last, None)
            with contextlib.suppress(OSError):  # compiled files have the time of their source to the second only
                Path(importlib.util.cache_from_source(str(own.file))).unlink()


def ref_to(thing: Any) -> Ref:
    """The reference of a module-level function or class.

    Raises:
        UsageError: it is a nested function, lambda or method, or not a function: other processes could not find it.
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
    """The object behind a reference, imported if need be."""
    if ref in objects:
        return objects[ref]
    module = load_file(ref.path) if ref.path else importlib.import_module(ref.module)
    objects[ref] = functools.reduce(getattr, ref.qualname.split("."), module)
    return objects[ref]


def packaged(ref: Ref) -> bool:
    """Whether a reference is to a module of jaxdyn itself."""
    return ref.module.partition(".")[0] == PACKAGE.name


def forget_cached(ref: Ref) -> None:
    """Empty every ``functools.cache`` in a user's module and in the users' modules that it uses.

    Cached values may be older than a global that was set since; a worker, which imports the modules anew, would not have them.
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
    """Whether a module is a user's own: not of jaxdyn, not installed, and not of Python."""
    file, top = getattr(module, "__file__", None), module.__name__.partition(".")[0]
    if top == PACKAGE.name or top in sys.stdlib_module_names - {"__main__"}:
        return False
    return not (isinstance(file, str) and installed(Path(file)))
