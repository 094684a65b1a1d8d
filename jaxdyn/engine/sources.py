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
from typing import Any, TypeGuard

import jax

from jaxdyn.engine import live
from jaxdyn.engine.failure import installed, shown_path
from jaxdyn.engine.readers import LOADERS, MODULES, READERS, arguments, find_readers, names_in
from jaxdyn.engine.reference import Ref, at_hand, forget, remembered, resolve
from jaxdyn.errors import UsageError

__all__ = ["doubts", "packaged", "reads", "reads_variable", "renew", "source_hash", "warning"]

PACKAGE = Path(__file__).parents[1]
ANYTHING = "*"
CHANGING = live.MUTATORS | {"register", "defjvp", "defvjp", "defjvps"}  # methods that change what they belong to
DYNAMIC = {"globals", "locals", "vars", "exec", "eval", "setattr", "delattr", "modules"}  # what they name is not in the source

_last: dict[Ref, str] = {}  # what the names behind a trial held when it was planned last
_declared: dict[str, dict[str, str]] = {}  # file -> what it declared -> hash of the content that it found


def reads(path: str | Path) -> Path:
    """Declare a file that a module reads: its content becomes part of what a stored run depends on.

    ``TABLE = np.loadtxt(jd.reads("table.csv"))``, at the top level of the module that holds the trial, or of one that it imports.

    Args:
        path: relative to the folder of the module's file; in a notebook, to the working folder.

    Returns:
        The whole path.

    Raises:
        UsageError: no such file, or one that cannot be read.
    """
    caller = _caller()
    file = ((Path(caller).parent if Path(caller).is_file() else Path()) / path).resolve()
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


def renew(ref: Ref, *others: Ref) -> str:
    """Forget programs and hashes if the names behind a trial hold other values than at the last call, or may do so.

    What JAX and ``functools.cache`` remember of functions behind it is forgotten as well, at the first call too: it may be older.

    Args:
        ref: of the trial.
        others: what else its programs are made from: its setting.

    Returns:
        The values that workers must find as well, as a hash; "" for a trial of the package.
    """
    now = {one: _current_values(one) for one in (ref, *others) if not packaged(one)}
    changed = any(_last.get(one, value) != value for one, value in now.items())
    if changed or any(one in _last and doubts(one) for one in now):
        forget()
    if any(_last.get(one) != value or doubts(one) for one, value in now.items()):
        jax.clear_caches()
        for thing in filter(None, map(at_hand, now)):
            live.forget_results(thing)
    _last.update(now)
    trial = at_hand(ref)
    return "" if trial is None or packaged(ref) else live.fixed_values(trial)


def _current_values(ref: Ref) -> str:
    """What the names behind an object of this process hold; "" for those of the package."""
    thing = at_hand(ref)
    return "" if thing is None or packaged(ref) else live.values(thing)


def packaged(ref: Ref) -> bool:
    """Whether something is jaxdyn's own."""
    return ref.module.partition(".")[0] == PACKAGE.name


@remembered
@functools.cache
def doubts(ref: Ref) -> tuple[str, ...]:
    """What a trial may depend on that is not seen, one sentence each; empty for the package's own."""
    if packaged(ref):
        return ()
    found, thing = _sources(ref), at_hand(ref)
    return (*(found.doubts if found else ()), *(_doubts_in_memory(thing) if thing is not None else ()))


def _doubts_in_memory(thing: Any) -> Iterator[str]:
    """Values that cannot be compared, and functions of notebooks that read something."""
    unknown, functions = live.unknown(thing)
    yield from unknown
    for function in functions:
        names = live.mentioned(function.__code__)
        readers = names & READERS or (names & LOADERS if names & MODULES else set())
        yield from (f"{function.__qualname__} reads what it does not declare ({name})" for name in sorted(readers))


def warning(refs: Iterable[Ref]) -> str | None:
    """One sentence for the person whose stored runs are not used, and what helps; None without doubt."""
    unseen = [doubt for ref in refs for doubt in doubts(ref)]
    if not unseen:
        return None
    more = f" (and {len(unseen) - 1} more)" if len(unseen) > 1 else ""
    files = any(" reads " in doubt for doubt in unseen)
    remedy = "declare files with jd.reads, variables with jd.reads_variable" if files else "make it a field of the setting"
    return f"{unseen[0]}{more}: its runs are made anew every time; {remedy}"


def _sources(ref: Ref) -> Sources | None:
    """Everything behind a reference; None where it came from no file."""
    start = Path(ref.path or getattr(sys.modules.get(ref.module) or importlib.import_module(ref.module), "__file__", None) or "")
    if not start.is_file():
        return None
    home = "" if ref.path else ref.module if start.name == "__init__.py" else ref.module.rpartition(".")[0]
    texts: dict[Path, str] = {}
    packages: set[str] = set()
    unseen: list[str] = []
    todo = [(start, ref.module), *_places(_parents(ref.module) if home else [], start, home, packages)]
    while todo:
        file, name = todo.pop()
        if file in texts:
            continue
        if file.suffix != ".py":  # compiled
            texts[file] = hashlib.sha256(file.read_bytes()).hexdigest()
            continue
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        foreign = installed(file)
        own = not (foreign or file.is_relative_to(PACKAGE))
        texts[file], imports, readers = _relevant(file.read_bytes(), ref.qualname if file == start else None, package, own)
        unseen += [f"{shown_path(file)}:{line} reads what it does not declare ({what})" for line, what in readers]
        if foreign:
            packages.add(f"{ref.module.partition('.')[0]} {_version(ref.module.partition('.')[0])}")
        todo += _places(imports, start, home, packages)
    return Sources(texts, tuple(sorted(packages)), tuple(unseen))


def _places(imports: Iterable[str], start: Path, home: str, packages: set[str]) -> Iterator[tuple[Path, str]]:
    """Files and names of imported modules that count; installed packages are added to ``packages``."""
    for imported in sorted(imports):
        place = _place(imported, start, home) if imported and _counts(imported) else None
        if isinstance(place, str):
            packages.add(place)
        elif place is not None and place.parent != PACKAGE / "engine":
            yield place, imported


@functools.cache
def _relevant(
    source: bytes, qualname: str | None, package: str, own: bool
) -> tuple[str, frozenset[str], tuple[tuple[int, str], ...]]:
    """What of a module counts, without comments and docstrings; what it imports; and where it reads what it does not declare.

    Args:
        source: of the module.
        qualname: of a function in it, of which alone the module is read; None: all of it counts.
        package: of the module.
        own: whether to look for what it reads: not in the package's modules and installed ones.
    """
    body = [_without_docstrings(statement) for statement in ast.parse(source).body if not _is_text(statement)]
    if qualname is None:
        statements = reached = [s for s in body if _defined(s) != {"THEORY"}]
    elif any("CLAIMS" in _defined(s) for s in body):
        statements = reached = _behind(body, qualname)
    else:
        statements, reached = body, _behind(body, qualname, whole=True) if own else []
    readers = find_readers([s for s in reached if not _is_main(s)]) if own else ()
    return "\n".join(map(ast.unparse, statements)), frozenset(_imports(statements, package)), tuple(readers)


def _is_text(statement: ast.stmt) -> bool:
    """Whether this is a docstring, or another text that stands alone."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def _without_docstrings(statement: ast.stmt) -> ast.stmt:
    """The statement, changed in place, without the docstrings of functions and classes at any depth."""
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return statement


def _is_main(statement: ast.stmt) -> bool:
    """Whether this runs where the module is the script alone: what it reads is not in the trial."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _behind(body: list[ast.stmt], qualname: str, whole: bool = False) -> list[ast.stmt]:
    """The top-level statements of a module on which a function of it can depend.

    These are what the function names, directly or not, what changes that, all classes, and statements that define no name. They are
    what counts in a module with a list of claims: so a new judge, figure or statement makes no run anew. Of others all of it counts
    (``whole``), and only functions that nothing uses are left out here.
    """
    names = [_defined(statement) for statement in body]
    used = [{node.id for node in names_in(s)} for s in body]
    dynamic = any(DYNAMIC & own for own in used) or "modules" in {n.attr for s in body for n in ast.walk(s) if _is_attribute(n)}
    if dynamic:
        return body
    changed = _changes(body)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    always = {
        i for i, s in enumerate(body) if not names[i] or isinstance(s, ast.ClassDef) or (whole and not isinstance(s, functions))
    }
    chosen = {i for i in always if not (whole and _is_main(body[i]))}
    met = {qualname.split(".")[0], ANYTHING}
    while True:
        met |= set().union(*(used[i] for i in chosen))
        more = {i for i in range(len(body)) if (names[i] | changed[i]) & met} - chosen
        if not more:
            return [body[i] for i in sorted(chosen)]
        chosen |= more


def _changes(body: list[ast.stmt]) -> list[set[str]]:
    """Names of what each top-level statement may change when it is run: by a method, a decorator, or a function that it calls.

    A registry that is filled by ``@reg`` or ``x = reg(f)``, rules that are added to a function by ``@law.defjvp``.
    """
    functions = {s.name: s for s in body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)}
    by_call = {name: _changed_here(function) for name, function in functions.items()}
    called = {name: _called(function) & functions.keys() for name, function in functions.items()}
    while True:
        wider = {name: own.union(*(by_call[other] for other in called[name])) for name, own in by_call.items()}
        if wider == by_call:
            break
        by_call = wider
    foreign, own_imports = _imported_names(body)
    result = []
    for statement in body:
        decorators = getattr(statement, "decorator_list", [])
        named = {name.id for d in decorators for name in names_in(d)} - foreign
        run = named if statement in functions.values() else _called(statement)
        direct = named if statement in functions.values() else _changed_here(statement)
        result.append(direct.union({ANYTHING} if named & own_imports else set(), *(by_call.get(name, set()) for name in run)))
    return result


def _changed_here(node: ast.AST) -> set[str]:
    """Names of what code changes in place: ``R["x"] = f``, ``R.x = f``, ``R.update(...)``, ``R += ...``, ``global R``."""
    changed = set[str]()
    for n in ast.walk(node):
        if isinstance(n, ast.Subscript | ast.Attribute) and not isinstance(n.ctx, ast.Load):
            changed.add(_root(n))
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in CHANGING:
            changed.add(_root(n.func))
        elif isinstance(n, ast.AugAssign):
            changed.add(_root(n.target))
        elif isinstance(n, ast.Global):
            changed |= set(n.names)
    return changed - arguments(node)


def _called(node: ast.AST) -> set[str]:
    """Roots of the functions that code calls."""
    return {_root(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}


def _root(node: ast.AST) -> str:
    """The first name of a dotted or subscripted one, or of a call of it."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_attribute(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute)


def _imported_names(body: list[ast.stmt]) -> tuple[set[str], set[str]]:
    """Names that a module imports: from installed packages, Python or jaxdyn; and from people's own modules."""
    foreign, own = set[str](), set[str]()
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module = (statement.module or "") if isinstance(statement, ast.ImportFrom) else statement.names[0].name
            top, near = module.partition(".")[0], isinstance(statement, ast.ImportFrom) and statement.level > 0
            known = top in (PACKAGE.name, *sys.stdlib_module_names) or isinstance(_searched(top, (top,)), str)
            (foreign if known and not near else own).update(_defined(statement))
    return foreign, own


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a plain definition, assignment or import binds; none for other statements, and for imports of all names."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).split(".")[0] for a in statement.names} - {"*"}
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    targets += [node.target for node in ast.walk(statement) if isinstance(node, ast.NamedExpr)]
    return {name.id for target in targets for name in names_in(target)}


def _imports(statements: list[ast.stmt], package: str) -> set[str]:
    """Names of the modules that statements import, at any depth."""
    modules = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, ast.Import):
            modules |= {name for a in node.names for name in (a.name, *_parents(a.name))}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], *([base] if base else [])])
            modules |= {base, *_parents(base), *(f"{base}.{a.name}" for a in node.names)}
    return modules


def _parents(name: str) -> list[str]:
    """The packages above a module, which are imported with it; those of jaxdyn only pass names on."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))] if parts[0] != PACKAGE.name else []


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
