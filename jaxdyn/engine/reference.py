"""References to functions and classes that travel to other processes, and the hash of the sources behind them."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from jaxdyn.errors import UsageError

__all__ = ["Ref", "load_file", "ref_to", "remembered", "resolve", "source_hash"]

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ref:
    """``module:qualname``, and the file of a module that is not installed (a user's own)."""

    module: str
    qualname: str
    path: str | None = None

    @property
    def title(self) -> str:
        """What people call it: a user's own file goes by its name, whatever its content."""
        return f"{Path(self.path).stem if self.path else self.module}:{self.qualname}"

    def __str__(self) -> str:
        return f"{self.module}:{self.qualname}"


_local: dict[Ref, Any] = {}  # objects of this process, so that notebooks' functions need no file
_folders: set[Path] = set()  # of user files: modules next to them are found by path, since workers lack them on sys.path
_caches: list[Any] = []  # functions that remember something by Ref


def remembered(function: Any) -> Any:
    """Register a cached function of a Ref, to be cleared when an object behind a Ref is redefined (notebooks, reloads)."""
    _caches.append(function)
    return function


def load_file(path: str | Path) -> Any:
    """Import a user's own file as a module (once per path and content).

    Raises:
        UsageError: the file is missing, no Python, or raises while it is imported.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"{path}: no such file; --load takes the path of a Python file with a CLAIMS list")
    digest = hashlib.sha256(str(file).encode() + file.read_bytes()).hexdigest()[:12]
    name = f"jaxdyn_user_{file.stem.replace('-', '_').replace('.', '_')}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _folders.add(file.parent)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise UsageError(f"{error.filename or path}, line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def ref_to(thing: Callable[..., Any]) -> Ref:
    """The reference of a module-level function or class.

    Raises:
        UsageError: a nested function, lambda or method: other processes could not find it.
    """
    if "<" in thing.__qualname__:
        raise UsageError(
            f"{thing.__qualname__} must be defined at the top level of a module, so that worker processes can import it"
        )
    module = sys.modules.get(thing.__module__)
    path = getattr(module, "__file__", None)
    own_file = thing.__module__ == "__main__" or thing.__module__.startswith("jaxdyn_user_")
    own_file = own_file or (path is not None and Path(path).resolve().parent in _folders)
    ref = Ref(thing.__module__, thing.__qualname__, str(Path(path).resolve()) if own_file and path else None)
    if _local.get(ref, thing) is not thing:
        for function in _caches:
            function.cache_clear()
    _local[ref] = thing
    return ref


def resolve(ref: Ref) -> Any:
    """The object behind a reference, imported if this process has not met it."""
    if ref in _local:
        return _local[ref]
    module = load_file(ref.path) if ref.path else importlib.import_module(ref.module)
    _local[ref] = functools.reduce(getattr, ref.qualname.split("."), module)
    return _local[ref]


@functools.cache
def _relevant(source: bytes, qualname: str | None, package: str) -> tuple[str, frozenset[str]]:
    """What of a module counts, without comments, and the names of the modules that it imports.

    Args:
        source: of the module.
        qualname: of a function in it, of which alone the module is read; None: all of it counts.
        package: of the module.
    """
    body = ast.parse(source).body
    statements = body if qualname is None else _behind(body, qualname)
    return "\n".join(map(ast.unparse, statements)), frozenset(_imports(statements, package))


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


def _module_file(name: str, start: Path, package: str) -> Path | None:
    """The source of a module that belongs to jaxdyn, to the trial's own package, or to the folder of the trial's file."""
    parts = name.split(".")
    if parts[0] == "jaxdyn":
        root = PACKAGE.parent
    elif package and parts[0] == package.split(".")[0]:
        root = start.parents[len(package.split("."))]
    else:
        root = start.parent
    path = root.joinpath(*parts)
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


def _counts(name: str) -> bool:
    """Whether a run's numbers can depend on this module: not the lists of claims, nor what only judges and figures use."""
    parts = name.split(".")
    lists = len(parts) <= 3 and parts[:2] == ["jaxdyn", "theories"] or parts[-1] == "claims"
    figures = parts[:2] == ["jaxdyn", "plotting"]
    return not (lists or figures) and name not in ("jaxdyn", "jaxdyn.engine", "jaxdyn.stats", "jaxdyn.errors")


def _own_source(thing: Any) -> str:
    """The source of something that came from no file; where there is none at all, its compiled code."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return repr(_code_facts(thing.__code__))


def _code_facts(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_code_facts(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, constants


@remembered
@functools.cache
def source_hash(ref: Ref) -> str:
    """SHA-256 over the sources behind a trial.

    What of its module it depends on, what that imports (directly or not) from jaxdyn, from its own package or from its own folder,
    and the runner.
    """
    start = Path(ref.path or getattr(sys.modules.get(ref.module) or importlib.import_module(ref.module), "__file__", None) or "")
    if not start.is_file():
        return hashlib.sha256(_own_source(resolve(ref)).encode()).hexdigest()
    runners = [PACKAGE / "engine" / name for name in ("program.py", "setting.py")]
    home = "" if ref.path else ref.module.rpartition(".")[0]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in runners))
    seen: dict[Path, str] = {}
    todo = [(start, ref.module)]
    while todo:
        file, name = todo.pop()
        if file in seen:
            continue
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        seen[file], imports = _relevant(file.read_bytes(), ref.qualname if file == start else None, package)
        names = [name for name in sorted(imports) if name and _counts(name)]
        targets = [(name, _module_file(name, start, home)) for name in names]
        todo += [(target, imported) for imported, target in targets if target is not None and target.parent.name != "engine"]
    for file in sorted(seen):
        digest.update(file.name.encode() + seen[file].encode())
    return digest.hexdigest()
