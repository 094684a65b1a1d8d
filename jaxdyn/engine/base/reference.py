"""References to functions and classes that travel to other processes.

A user's own file is imported under a unique name. Its helpers, the modules next to it that it imports, keep their names, and a
process has one module per name. So a helper is refused if another file is already imported under its name, and imported anew if it
has changed. Files that Python opens to read while a user's module is imported, such as its data, and folders that it lists, count
as parts of the module: if one of them has changed, the module is imported anew, with all that import it.

What is not found by reading the imports of files is noted as it happens (:data:`_noted`): modules of users that are imported by any
other way or from another folder, and what functions of users' modules import, read or list when they are called, as a trial is when
it is traced. Who holds something of it is not known, so that all users' modules are imported anew if any of it has changed.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import secrets
import sys
import time
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from jaxdyn.engine.base.failure import BEGAN, PACKAGE, installed, let_through, unimportable
from jaxdyn.errors import UsageError, shown

__all__ = [
    *("Ref", "content_hash", "edited", "forget_cached", "hash_file", "load_file", "packaged", "read_by", "ref_to"),
    *("refuse_hidden_names", "refuse_namesakes", "resolve"),
    "this_process",
    "forget",
]


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
    """A user's own file, or a helper: its path, a hash of its content, its imports from its folder, and what these read."""

    file: Path
    version: str


USER = "jaxdyn_user_"  # begins the names of users' files
CACHED = type(functools.cache(len))
LARGE = 2**26  # bytes; what is noted of a larger file is its size and its times
NOT_OF_USERS = ("cli", "engine", "explorer", "maintain", "report")  # folders of jaxdyn that read files of their own
LAG = 2 * 10**7  # nanoseconds by which the time that a file gets may lag behind the clock
SETTLED = 2 * 10**9  # nanoseconds: a younger file may change once more without another time of change
IMPORTING, SYSTEM = "<frozen importlib", ("/proc/", "/sys/", "/dev/")  # Python's own reading of modules; files that are none
LISTING = ("os.listdir", "os.scandir")  # as glob and os.walk do
SEARCHING = ("importlib/metadata", "pkgutil.py")  # what lists folders to find packages

objects: dict[Ref, Any] = {}  # objects of this process, so that notebooks' functions need no file
_folders: set[Path] = set()  # of user files: modules in them are found by path, since workers lack the folders on sys.path
own_modules: dict[str, Own] = {}  # user files and their helpers, by the names of their modules
_read: dict[str, dict[str, str]] = {}  # what a module's import has read: module -> file -> hash of its content then
_noted: dict[str, str] = {}  # modules, files and folders that users' code has got otherwise, with hashes of their content then
_renewals = 0  # how often all users' modules had to be imported anew
_executed_now: list[tuple[str, str]] = []  # modules of users' files that are being imported, and these files, the innermost last


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
    if _noted_has_changed():
        _forget_all()
    digest = hashlib.sha256(str(file).encode(errors="replace") + content).hexdigest()[:12]
    name = f"{USER}{file.stem.replace('-', '_').replace('.', '_')}_{digest}"
    helpers = _helpers_of(file, name, content_hash)
    own = {name: helpers.pop(name), **helpers}
    if name in sys.modules and own_modules.get(name, own[name]) == own[name]:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise UsageError(f"{path}: not a Python file (its name must end in .py)")
    _refuse_shared(helpers)
    _refuse_borrowed(file, helpers)
    _refuse_noted(file)
    _drop_changed(own)
    module = _executed(spec, content, path)
    _refuse_hidden(helpers, name)
    own_modules.update(_helpers_of(file, name))
    return module


def _executed(spec: Any, content: bytes, path: str | Path) -> Any:
    """Execute a user's file with this content, not an older compiled one, with its folder on the path; returns the module."""
    module, folder = importlib.util.module_from_spec(spec), Path(spec.origin).parent
    sys.modules[spec.name] = module
    _folders.add(folder)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    _watch_files()
    _executed_now.append((spec.name, spec.origin))
    try:
        exec(spec.loader.source_to_code(content, spec.origin), module.__dict__)
    except SyntaxError as error:
        del sys.modules[spec.name]
        raise UsageError(f"{error.filename or path}, line {error.lineno}: {error.msg}") from None
    except BaseException as error:
        let_through(error)
        del sys.modules[spec.name]
        raise unimportable(path, error) from error
    finally:
        sys.path.remove(str(folder))
        _executed_now.remove((spec.name, spec.origin))
    return module


@functools.cache
def _watch_files() -> None:
    """From now on, note what users' modules import, read and list; Python has no way to end this."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a file that is opened to be read or run as a module, or a folder that is listed, with its content before that."""
    if event not in ("open", "exec", *LISTING):
        return
    with contextlib.suppress(Exception):  # an error here would be one of the module's own
        if event == "exec":
            return _note_module(arguments[0], sys._getframe(1))
        place = _opened(arguments) if event == "open" else arguments[0] or "."
        if not isinstance(place, int | types.NoneType):
            _note_data(Path(os.fsdecode(place)).absolute(), sys._getframe(1), event in LISTING)


def _opened(arguments: tuple[Any, ...]) -> Any:
    """The path of a file that is opened to be read; None if it is opened to be written."""
    path, mode, flags = arguments
    writes = flags & (os.O_WRONLY | os.O_RDWR) or not {*"wax+"}.isdisjoint(mode or "")
    return None if writes else path


def _note_data(place: Path, frame: types.FrameType, listed: bool) -> None:
    """Note a file or folder as read by the user's module that is being imported, or by one of users' functions."""
    reader = _reader(frame) if _executed_now else None
    if reader is None and (_executed_now or not _called_by_user(frame)):
        return
    if _foreign(place) or (_is_search(frame) if listed else str(place) in sys.path):
        return
    known, content = (_noted, _stamp) if reader is None else (_read.setdefault(reader, {}), content_hash)
    if str(place) not in known:
        known[str(place)] = ""  # while it is read here, which is noted, too
        known[str(place)] = content(place)


def _is_search(frame: types.FrameType | None) -> bool:
    """Whether a folder is listed to find packages in it."""
    while frame is not None and (frame.f_code.co_name != "<module>"):
        file = Path(frame.f_code.co_filename)
        if any(name in file.as_posix() for name in SEARCHING) and installed(file):
            return True
        frame = frame.f_back
    return False


def _note_module(code: Any, frame: types.FrameType) -> None:
    """Note a file of a user's that is run as a module, or as :mod:`runpy` does it, while a user's code runs."""
    if not isinstance(code, types.CodeType) or code.co_name != "<module>":
        return
    place = Path(code.co_filename).absolute()
    own = not _executed_now or _executed_now[-1][1] != code.co_filename
    if own and place.is_file() and not _foreign(place) and (_executed_now or _called_by_user(frame, importing=True)):
        _noted[str(place)] = _stamp(place)


def _foreign(place: Path) -> bool:
    """Whether a file or folder is none of a user's own: of Python, a library, jaxdyn, or the system."""
    return installed(place) or place.is_relative_to(PACKAGE) or str(place).startswith(SYSTEM)


def _reader(frame: types.FrameType | None) -> str | None:
    """The user's module whose import reads a file; None for Python's reading of modules, and for imports of other packages."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORTING):
            return None
        if frame.f_code.co_name == "<module>":
            place = frame.f_globals.get("__file__")
            own = isinstance(place, str) and not _foreign(Path(place).absolute())
            return str(frame.f_globals["__name__"]) if own else None
        frame = frame.f_back
    return _executed_now[-1][0]  # a thread's


def _called_by_user(frame: types.FrameType | None, *, importing: bool = False) -> bool:
    """Whether a function of a user's module reads, rather than JAX its cache, the engine its results or Python its modules.

    ``importing``: Python's reading of a module is what is asked about.
    """
    places = {str(own.file) for own in own_modules.values()} | _noted.keys()
    while frame is not None:
        file = frame.f_code.co_filename
        if file in places:
            return True
        if _of_engine(file) or (file.startswith(IMPORTING) and not importing):
            return False
        frame = frame.f_back
    return False


@functools.cache
def _of_engine(file: str) -> bool:
    """Whether a file is of JAX, or of the parts of jaxdyn that read files of their own."""
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        return path.relative_to(PACKAGE).parts[0] in NOT_OF_USERS
    return "jax" in path.parts and installed(path)


def _stamp(place: Path) -> str:
    """The hash of a file or folder; for a large file, which a trial may read, its size and its times."""
    try:
        found = place.stat()
    except OSError:
        return ""
    return content_hash(place) if found.st_size <= LARGE else repr((found.st_ino, found.st_size, found.st_mtime_ns))


def _noted_has_changed() -> bool:
    """Whether something has changed that was noted, or that modules which are no file's helpers have read when imported."""
    helpers = {str(own.file) for own in own_modules.values()}  # are compared one by one
    if any(_stamp(Path(place)) != known for place, known in _noted.items() if place not in helpers):
        return True
    others = [_read[name].items() for name in _read.keys() & sys.modules.keys() - own_modules.keys()]
    return any(content_hash(Path(place)) != known for read in others for place, known in read)


def forget() -> None:
    """Forget what users' modules have read, as in a new process."""
    global _renewals
    _noted.clear()
    _read.clear()
    _renewals = 0


def _forget_all() -> None:
    """Forget helpers, and what else users' code has imported, so that it is imported anew, as are users' files when asked for."""
    global _renewals
    _renewals += 1  # another version of each of them
    files = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    noted = {name for name, file in files if isinstance(file, str) and str(Path(file).absolute()) in _noted}
    for name in {name for name in {*own_modules, *noted} if not name.startswith(USER)} - {"__main__"}:
        _forget(name)
    for place in _noted:
        _remove_compiled(Path(place))
    for name in _read.keys() - sys.modules.keys() - own_modules.keys():
        del _read[name]
    _noted.clear()


def _forget(name: str) -> None:
    """Forget a module, and all its modules if it is a package: they would stay in the old version."""
    for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[known]
    for known in [known for known in _read if known == name or known.startswith(f"{name}.")]:
        del _read[known]
    outer, _, last = name.rpartition(".")
    vars(sys.modules.get(outer, types.ModuleType(""))).pop(last, None)
    if name in own_modules:
        _remove_compiled(own_modules[name].file)


def _remove_compiled(file: Path) -> None:
    """Remove a compiled file, which has the time of its source to the second only."""
    with contextlib.suppress(OSError, NotImplementedError, ValueError):
        Path(importlib.util.cache_from_source(str(file))).unlink()


def content_hash(file: Path) -> str:
    """SHA-256 of a file's content, or of a folder's names, in hexadecimal digits; empty if it is neither, or cannot be read."""
    try:
        if file.is_dir():
            return hashlib.sha256(repr(sorted({*os.listdir(file)} - {"__pycache__"})).encode()).hexdigest()
        found = file.stat()
        state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        young = time.time_ns() - max(state[-2:]) < SETTLED
        return (_hash_as_of.__wrapped__ if young else _hash_as_of)(file, state) if file.is_file() else ""
    except OSError:
        return ""


def edited(file: Path) -> str:
    """Empty; of a file that has changed since this process began, a word that no other process has.

    This process may have loaded the file before it changed. Where a hash of its content stands for the code that runs here, this
    word is part of the hash, so that what that code gave is never taken for what the file now holds would give.
    """
    try:
        found = file.stat()
    except OSError:
        return ""
    since = BEGAN - LAG < max(found.st_mtime_ns, found.st_ctime_ns) < time.time_ns() + LAG  # a time to come is no edit
    return f"edited {this_process()}" if since else ""


@functools.cache
def this_process() -> str:
    """A word that no other process has."""
    return secrets.token_hex(8)


@functools.lru_cache(1000)
def _hash_as_of(file: Path, state: tuple[int, ...]) -> str:
    """The hash of a file in a state, in which it is read once."""
    return hash_file(file)


def hash_file(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits.

    What processes have written to the file's memory map goes to the disk first: from then on the next such writing, too, moves the
    file's times, which otherwise stay until the system gets to it. (Not in file systems within the memory, which have no disk.)

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as opened:
        with contextlib.suppress(OSError):  # a file system without it
            os.fsync(opened.fileno())
        return hashlib.file_digest(opened, "sha256").hexdigest()


def read_by(module: str) -> dict[str, str]:
    """The files that a user's module has read while it was imported, with the hashes of what they held then."""
    return dict(_read.get(module, {}))


def _helpers_of(file: Path, own: str, data: Callable[[Path], str] | None = None) -> dict[str, Own]:
    """A file, under its own name, and its helpers: modules of its folder that it imports, also indirectly or inside functions.

    ``data`` gives the hash of a file that one of them has read; by default the hash of what was in it then.
    """
    places, direct, todo = {"": file}, dict[str, dict[str, Path]](), [""]
    while todo:
        name = todo.pop()
        direct[name] = _direct(places[name], name, file.parent)
        new = {inner: place for inner, place in direct[name].items() if inner not in places}
        places |= new
        todo += new
    contents = {}
    for name, place in places.items():
        read = {file: known if data is None else data(Path(file)) for file, known in _read.get(name or own, {}).items()}
        contents[name] = hashlib.sha256(_content(place) + (repr(sorted(read.items())).encode() if read else b"")).hexdigest()
    versions = {name: repr(sorted((inner, contents[inner]) for inner in _reached(direct, name))) for name in places}
    hashes = {name or own: hashlib.sha256(f"{text}{_renewals or ''}".encode()).hexdigest()[:12] for name, text in versions.items()}
    return {name or own: Own(place, hashes[name or own]) for name, place in places.items()}


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


def _refuse_noted(file: Path) -> None:
    """Refuse a file that names, in a text, a module next to it while this process has another one, imported so, under that name."""
    words = _texts(_content(file)) if _noted else frozenset()
    for name in sorted(words & sys.modules.keys()):
        place = Path(getattr(sys.modules[name], "__file__", None) or file).absolute()
        near = [one for one in (file.parent / name / "__init__.py", file.parent / f"{name}.py") if one.is_file()]
        if str(place) in _noted and near and not near[0].samefile(place):
            raise UsageError(_both(name, near[0], place))


@functools.lru_cache(1000)
def _texts(content: bytes) -> frozenset[str]:
    """The texts in code."""
    try:
        return frozenset(n.value for n in ast.walk(ast.parse(content)) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    except (SyntaxError, ValueError):
        return frozenset()


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
    for name in _read.keys() - sys.modules.keys():  # whose import failed
        del _read[name]
    for name, own in found.items():
        if own_modules.get(name, own) != own:
            _forget(name)


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
    path = getattr(sys.modules.get(home), "__file__", str(own_modules[home].file) if home in own_modules else None)
    own_file = home == "__main__" or home.startswith(USER)
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


def refuse_namesakes(things: Iterable[Any]) -> None:
    """Refuse different functions or classes with one reference: runs are known by it, so that one would get the other's runs.

    Raises:
        UsageError: a name was defined again, or a decorator gave its function the name of another one (``functools.wraps``).
    """
    met: dict[Ref, Any] = {}
    for thing in {id(thing): thing for thing in things}.values():
        ref = ref_to(thing)
        if met.setdefault(ref, thing) is not thing:
            why = "trials, or settings, that are run in one call have different names, also after functools.wraps"
            raise UsageError(f"two different objects called {ref.title} are not allowed: {why}")


def refuse_hidden_names(refs: Iterable[Ref]) -> None:
    """Refuse references under which another process, which imports the module, would find another object than this one has.

    Raises:
        UsageError: the module's name was given to another object, or a decorator kept the name of the function that it wraps.
    """
    for ref in refs:
        module = sys.modules.get(ref.module)
        if module is None or ref not in objects:
            continue
        if functools.reduce(_attribute, ref.qualname.split("."), module) is not objects[ref]:
            why = "they import its module, where another object has this name; rename one of them"
            raise UsageError(f"{ref.title} is not allowed in other processes: {why}")


def _attribute(thing: Any, name: str) -> Any:
    return getattr(thing, name, None)


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
