"""What a trial's numbers depend on: the sources behind it, the packages that these import, and files and variables they declare.

Whatever changes makes stored runs another program's. What cannot be seen is said (:func:`doubts`), and then nothing stored is used.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from jaxdyn.engine import live
from jaxdyn.engine.failure import installed, shown_path
from jaxdyn.engine.reference import Ref, at_hand, forget, remembered, resolve
from jaxdyn.errors import UsageError

__all__ = ["doubts", "reads", "reads_variable", "renew", "source_hash", "warning"]

PACKAGE = Path(__file__).parents[1]
READERS = {  # functions and attributes by which a module reads what is not in its source
    *("open", "read_text", "read_bytes", "getenv", "environ", "import_module", "__import__", "urlopen"),
    *("loadtxt", "genfromtxt", "fromfile", "memmap", "open_dataset", "load_dataset", "open_dataarray", "load_dataarray"),
    *("read_csv", "read_json", "read_parquet", "read_excel", "read_table", "read_pickle", "read_hdf", "read_feather"),
}
LOADERS = {"load", "safe_load", "check_output", "run"}  # readers only as attributes of these modules
MODULES = {"np", "numpy", "jnp", "json", "pickle", "tomllib", "yaml", "torch", "joblib", "subprocess"}
DECLARING = {"reads", "reads_variable"}

_last: dict[Ref, str] = {}  # what the names behind a trial held when it was planned last
_declared: dict[str, dict[str, str]] = {}  # file -> what it declared -> hash of the content that it found


def reads(path: str | Path) -> Path:
    """Declare a file that a module reads: its content becomes part of what a stored run depends on.

    ``TABLE = np.loadtxt(jd.reads("table.csv"))``, at the top level of the module that holds the trial, or of one that it imports.

    Args:
        path: relative to the folder of the module's file.

    Returns:
        The whole path.

    Raises:
        UsageError: no such file, or one that cannot be read.
    """
    caller = _caller()
    file = (Path(caller).parent / path).resolve()
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"jd.reads({str(path)!r}): {file} cannot be read ({error.strerror or error})") from None
    _declared.setdefault(caller, {})[f"file {path}"] = hashlib.sha256(content).hexdigest()
    return file


def reads_variable(name: str, default: str = "") -> str:
    """Declare a variable of the environment, as :func:`reads` declares a file; returns its value."""
    value = os.environ.get(name, default)
    _declared.setdefault(_caller(), {})[f"variable {name}"] = hashlib.sha256(value.encode(errors="replace")).hexdigest()
    return value


def _caller() -> str:
    """The file of the module that declares something."""
    return str(Path(sys._getframe(2).f_code.co_filename).resolve())


@dataclass(frozen=True)
class Sources:
    """What was found behind a trial: texts by file, installed packages with their versions, and what cannot be seen."""

    texts: dict[Path, str]
    packages: tuple[str, ...]
    doubts: tuple[str, ...]


@remembered
@functools.cache
def source_hash(ref: Ref) -> str:
    """SHA-256 over what a trial's numbers depend on.

    What of its module it depends on; what that imports, directly or not, from anywhere but installed packages; the versions of
    these; the content of declared files and variables; what its names hold (:mod:`jaxdyn.engine.live`); and the runner.
    """
    runners = [PACKAGE / "engine" / name for name in ("program.py", "setting.py")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in runners))
    found = _sources(ref)
    if found is None:
        digest.update(_own_source(resolve(ref)).encode())
        digest.update(live.values(resolve(ref)).encode())
        return digest.hexdigest()
    for file, text in sorted(found.texts.items()):
        digest.update(file.name.encode() + text.encode())
        digest.update(repr(sorted(_declared.get(str(file.resolve()), {}).items())).encode())
    digest.update(repr(found.packages).encode())
    digest.update(_current_values(ref).encode())
    return digest.hexdigest()


def renew(ref: Ref) -> str:
    """Forget programs and hashes if the names behind a trial hold other values than at the last call.

    Returns:
        The values that workers must find as well, as a hash; "" for a trial of the package.
    """
    now = _current_values(ref)
    if _last.setdefault(ref, now) != now:
        forget()
        _last[ref] = now
    thing = at_hand(ref)
    return "" if thing is None or _packaged(ref) else live.fixed_values(thing)


def _current_values(ref: Ref) -> str:
    """What the names behind an object of this process hold; "" for those of the package."""
    thing = at_hand(ref)
    return "" if thing is None or _packaged(ref) else live.values(thing)


def _packaged(ref: Ref) -> bool:
    return ref.module.partition(".")[0] == PACKAGE.name


@remembered
@functools.cache
def doubts(ref: Ref) -> tuple[str, ...]:
    """What a trial may depend on that is not seen, one sentence each; empty for the package's own."""
    found = None if _packaged(ref) else _sources(ref)
    return () if found is None else found.doubts


def warning(refs: Iterable[Ref]) -> str | None:
    """One sentence for the person whose stored runs are not used, and what helps; None without doubt."""
    unseen = [doubt for ref in refs for doubt in doubts(ref)]
    if not unseen:
        return None
    more = f" (and {len(unseen) - 1} more)" if len(unseen) > 1 else ""
    return f"{unseen[0]}{more}: its runs are made anew every time; declare files with jd.reads, variables with jd.reads_variable"


def _sources(ref: Ref) -> Sources | None:
    """Everything behind a reference; None where it came from no file."""
    start = Path(ref.path or getattr(sys.modules.get(ref.module) or importlib.import_module(ref.module), "__file__", None) or "")
    if not start.is_file():
        return None
    home = "" if ref.path else ref.module.rpartition(".")[0]
    texts: dict[Path, str] = {}
    packages: set[str] = set()
    unseen: list[str] = []
    todo = [(start, ref.module)]
    while todo:
        file, name = todo.pop()
        if file in texts:
            continue
        if file.suffix != ".py":  # compiled
            texts[file] = hashlib.sha256(file.read_bytes()).hexdigest()
            continue
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        texts[file], imports, readers = _relevant(file.read_bytes(), ref.qualname if file == start else None, package)
        if installed(file):
            packages.add(f"{ref.module.partition('.')[0]} {_version(ref.module.partition('.')[0])}")
        elif not file.is_relative_to(PACKAGE):
            unseen += [f"{shown_path(file)}:{line} reads what it does not declare ({what})" for line, what in readers]
        for imported in sorted(imports):
            place = _place(imported, start, home) if imported and _counts(imported) else None
            if isinstance(place, str):
                packages.add(place)
            elif place is not None and place.parent != PACKAGE / "engine":
                todo.append((place, imported))
    return Sources(texts, tuple(sorted(packages)), tuple(unseen))


@functools.cache
def _relevant(source: bytes, qualname: str | None, package: str) -> tuple[str, frozenset[str], tuple[tuple[int, str], ...]]:
    """What of a module counts, without comments; the modules that it imports; and where it reads what it does not declare.

    Args:
        source: of the module.
        qualname: of a function in it, of which alone the module is read; None: all of it counts.
        package: of the module.
    """
    body = ast.parse(source).body
    statements = body if qualname is None else _behind(body, qualname)
    return "\n".join(map(ast.unparse, statements)), frozenset(_imports(statements, package)), tuple(_readers(statements))


def _readers(statements: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Line and words of every place that reads a file or a variable which no top-level call of ``reads`` declares."""
    declared = {name for s in statements if _declares(s) for name in _defined(s)}
    for statement in statements:
        written = {id(n) for n in ast.walk(statement) if _writes(n) for n in ast.walk(n)}
        inside = {id(n) for n in ast.walk(statement) if isinstance(n, ast.FunctionDef) for n in ast.walk(n)}
        for node in (n for n in ast.walk(statement) if isinstance(n, ast.expr)):
            if isinstance(node, ast.Call) and _name(node.func) in DECLARING:
                if id(node) in inside:
                    yield node.lineno, f"{_name(node.func)} inside a function, not at the top level"
            elif (
                id(node) not in written
                and (what := _reader(node))
                and not (_declares(node) or {n.id for n in _names(node)} & declared)
            ):
                yield node.lineno, what


def _writes(node: ast.AST) -> bool:
    """Whether this only sets a variable of the environment."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func.attr in ("setdefault", "update", "pop") and _name(node.value.func.value) == "environ"
    return isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _name(node.value) == "environ"


def _reader(node: ast.AST) -> str | None:
    """The words of a call or an attribute that reads something, else None."""
    called = node.func if isinstance(node, ast.Call) else node
    name = _name(called)
    if name in READERS and (isinstance(node, ast.Call) or name == "environ"):
        return ast.unparse(called)
    owner = _name(called.value) if isinstance(called, ast.Attribute) else None
    return ast.unparse(called) if isinstance(node, ast.Call) and name in LOADERS and owner in MODULES else None


def _name(node: ast.AST) -> str | None:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Name))


def _declares(node: ast.AST) -> bool:
    """Whether a part of the source calls ``reads``."""
    return any(isinstance(n, ast.Call) and _name(n.func) in DECLARING for n in ast.walk(node))


def _behind(body: list[ast.stmt], qualname: str) -> list[ast.stmt]:
    """The top-level statements of a module on which a function of it can depend.

    In a module with a list of claims these are what the function names, directly or not, all classes, and statements that define no
    name: so a new judge, figure or statement makes no run anew. Of other modules it is everything.
    """
    names = [_defined(statement) for statement in body]
    used = [{node.id for node in ast.walk(s) if isinstance(node, ast.Name)} for s in body]
    if not any("CLAIMS" in own for own in names) or any({"globals", "exec", "eval"} & own for own in used):
        return body
    chosen = {i for i, s in enumerate(body) if not names[i] or isinstance(s, ast.ClassDef)}
    wanted, met = {qualname.split(".")[0]}, set[str]()
    while True:
        chosen |= {i for i, own in enumerate(names) if own & wanted}
        met |= wanted
        wanted = set().union(*(used[i] for i in chosen)) - met
        if not wanted:
            return [body[i] for i in sorted(chosen)]


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a plain definition, assignment or import binds; none for other statements."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).split(".")[0] for a in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _imports(statements: list[ast.stmt], package: str) -> set[str]:
    """Names of the modules that statements import, at any depth."""
    modules = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Import):
            modules |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], *([base] if base else [])])
            modules |= {base, *(f"{base}.{a.name}" for a in node.names)}
    return modules


def _place(name: str, start: Path, package: str) -> Path | str | None:
    """Where an imported module is: its file, for an installed package ``name version``, None for Python's own and for no module.

    Looked for in jaxdyn, the trial's own package, the folder of the trial's file, and wherever Python finds it.
    """
    parts = name.split(".")
    if parts[0] == "jaxdyn":
        return _file_in(PACKAGE.parent, parts)
    if package and parts[0] == package.split(".")[0]:
        return _file_in(start.parents[len(package.split("."))], parts)
    return _file_in(start.parent, parts) or _searched(parts[0], tuple(parts))


def _file_in(root: Path, parts: list[str] | tuple[str, ...]) -> Path | None:
    path = root.joinpath(*parts)
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@functools.cache
def _searched(top: str, parts: tuple[str, ...]) -> Path | str | None:
    """The place of a module that Python's own search finds; only its first part is looked for, since that imports nothing."""
    if top in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return None
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    origin = Path(spec.origin) if spec.origin and Path(spec.origin).is_file() else None
    if any(installed(place) for place in (*folders, *([origin] if origin else []))):
        return f"{top} {_version(top)}"
    inner = next((file for folder in folders if (file := _file_in(folder.parent, parts))), None)
    return inner or (origin if len(parts) == 1 else None)


def _version(top: str) -> str:
    """The version of an installed package by the name under which it is imported."""
    try:
        return version(top)
    except PackageNotFoundError:
        return ", ".join(version(name) for name in sorted(set(packages_distributions().get(top, ()))))


def _counts(name: str) -> bool:
    """Whether a run's numbers can depend on this module: not the lists of claims, nor what only judges and figures use."""
    parts = name.split(".")
    lists = parts[:2] == ["jaxdyn", "theories"] and (len(parts) <= 3 or parts[-1] == "claims")
    figures = parts[:2] == ["jaxdyn", "plotting"]
    return not (lists or figures) and name not in ("jaxdyn", "jaxdyn.engine", "jaxdyn.stats", "jaxdyn.errors")


def _own_source(thing: Any) -> str:
    """The source of something that came from no file; where there is none at all, its compiled code."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        parts = [thing] if hasattr(thing, "__code__") else getattr(thing, "__dict__", {}).values()
        functions = [part for part in parts if hasattr(part, "__code__")]  # none in what is compiled into Python
        return repr([(f.__qualname__, live.code_facts(f.__code__)) for f in functions])
