"""Facts of a program without tracing it: its fingerprint and its best executor, remembered in the user's cache folder.

As in compilers' caches, a cheap direct key stands for the program's text, which is expensive to make. The key hashes the code of
the modules that the trial's module imports, without docstrings, comments and layout, the package's data files, versions, flags and
static fields. It is used for jaxdyn's own trials, in a process that has loaded no other code (:func:`allow`); everything else is
traced. When a program is compiled its text is hashed again, so that a key that misses something ends in an error and not in
another program's results.
"""

from __future__ import annotations

import collections
import concurrent.futures as cf
import functools
import hashlib
import importlib.util
import json
import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jaxdyn.engine.base.devices import devices
from jaxdyn.engine.base.failure import PACKAGE, installed, let_through
from jaxdyn.engine.base.reference import content_hash, edited, packaged
from jaxdyn.engine.base.syntax import code_hash, imports_of
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.claims.resource import identity_of, why_unknown
from jaxdyn.engine.programs import tracing
from jaxdyn.engine.programs.chunk import Program, program_name, switches
from jaxdyn.engine.programs.fingerprint import CALLS_BACK
from jaxdyn.engine.programs.suiting import needs
from jaxdyn.engine.storage.cache import read_cached, write_cached

__all__ = [
    "SHIPPED",
    "allow",
    "alone",
    "code_and_imports",
    "direct_key",
    "facts_of",
    "in_use",
    "modules_behind",
    "shipped_programs",
    "traced_facts",
    "tracing_times",
    "untraced",
    "versions_of",
    "manual_hash",
    "surroundings",
]

PROGRAMS, MODULES = "programs.jsonl", "modules.jsonl"  # in the cache folder
TIMES = "tracing.jsonl"  # next to them: seconds that tracing a program took last, by name, since its key changes with its code
SHIPPED = Path(__file__).parents[1] / "programs.json"  # the same file, shipped in a wheel for the package's own programs
FACTS = {"fingerprint": str, "bytes": int, "executor": str, "group": int, "heavy": bool}
UNTRACED = {"fingerprint": "", "bytes": 0, "executor": "vmap", "group": 0, "heavy": False}
TRACING = (  # libraries that trials use, also for constants and texts, and those that the packages of trials import for anything
    *("chex", "diffrax", "equinox", "flax", "gguf", "huggingface_hub", "jax", "jaxlib", "jaxtyping", "lineax", "matplotlib"),
    *("networkx", "numpy", "optax", "optimistix", "safetensors", "scikit-learn", "scipy", "sentencepiece", "threadpoolctl"),
    *("tokenizers", "torch", "xarray"),
)
NO_DATA = {"cli", "engine", "explorer", "maintain", "recorded", "report", "__pycache__"}  # folders without data of trials
FACT_MAKERS = (
    "jaxdyn.engine.programs.tracing",
    "jaxdyn.engine.programs.fingerprint",
    "jaxdyn.engine.programs.suiting",
)  # modules around every trial

_allowed = False
_new: dict[str, tuple[str, list[str]]] = {}  # modules that the cache folder does not have yet


def allow() -> None:
    """Allow direct keys in this process; for the command line, where only the package's code has run."""
    global _allowed
    _allowed = True


def in_use() -> bool:
    """Whether direct keys are used: they are allowed, and this process is :func:`alone`."""
    return _allowed and alone()


def alone() -> bool:
    """Whether only the package's code runs here, which a hash of its files tells: other code could have changed it in memory.

    No user's module is loaded, and no other package offers claims.
    """
    modules = [getattr(m, "__file__", None) for name, m in list(sys.modules.items()) if name not in ("__main__", "__mp_main__")]
    return not any(map(_foreign, {file for file in modules if file})) and not list(library.points())


@functools.cache
def _foreign(file: str) -> bool:
    path = Path(file)
    return not (path.is_relative_to(PACKAGE) or installed(path))


def facts_of(
    programs: Iterable[Program],
    pool: cf.Executor | None = None,
    tell: Callable[[int, int], None] | None = None,
    until: float = math.inf,
) -> dict[Program, dict[str, Any]]:
    """``{"fingerprint", "bytes", "executor", "group", "heavy"}`` for each program, by its direct key or else traced.

    A trial that raises while it is traced has an empty fingerprint; it raises again, and is reported, when it is run.

    Args:
        programs: the programs, in the order in which they are traced.
        pool: executor that traces the package's own programs; None: all are traced in this process.
        tell: called with the number of programs that are traced, and of those to trace, after each.
        until: the time (:func:`time.monotonic`) after which no program is traced; those that were not reached are left out.
    """
    programs = list(dict.fromkeys(programs))
    keys = _direct_keys(programs)
    known = _known() if keys else {}
    found = {p: known[key] for p, key in keys.items() if key in known}
    unknown = [p for p in programs if p not in found]
    seconds = dict[str, float]()
    for i, (program, (one, took)) in enumerate(_traced_until(unknown, pool, until)):
        found[program] = UNTRACED if one is None else one
        seconds[program_name(program)] = took
        if tell is not None:
            tell(i + 1, len(unknown))
    if seconds:
        write_cached(TIMES, tracing_times() | seconds)
    if new := {keys[p]: found[p] for p in unknown if p in keys and p in found and _is_lasting(found[p]["fingerprint"])}:
        write_cached(PROGRAMS, _checked(read_cached(PROGRAMS)) | new)
    return {p: found[p] for p in programs if p in found}


def _is_lasting(fingerprint: str) -> bool:
    """Whether a program has the same fingerprint when it is traced again: not if it calls back, nor if its trial raised."""
    return bool(fingerprint) and not fingerprint.startswith(CALLS_BACK)


def _traced_until(
    programs: Sequence[Program], pool: cf.Executor | None, until: float
) -> Iterator[tuple[Program, tuple[dict[str, Any] | None, float]]]:
    """Each program with its facts and the seconds that they took; without those that would have been begun too late.

    With a time limit a pool has no more programs than cores at once, since what an executor was given cannot be taken back.
    """
    elsewhere = [p for p in programs if packaged(p.trial)] if pool is not None else []
    queue, waiting = collections.deque(elsewhere), dict[Any, Program]()
    most = len(elsewhere) if until == math.inf else os.cpu_count() or 1
    while queue or waiting:
        while pool is not None and queue and len(waiting) < most and time.monotonic() < until:
            program = queue.popleft()
            waiting[pool.submit(_timed_facts, program)] = program
        if not waiting:
            break
        for future in cf.wait(waiting, return_when=cf.FIRST_COMPLETED).done:
            yield waiting.pop(future), future.result()
    for program in (p for p in programs if p not in elsewhere):
        if time.monotonic() >= until:
            return
        yield program, _timed_facts(program)


def _timed_facts(program: Program) -> tuple[dict[str, Any] | None, float]:
    """The facts of a program by tracing it, and how many seconds that took."""
    start = time.perf_counter()
    return traced_facts(program), time.perf_counter() - start


def tracing_times() -> dict[str, float]:
    """Seconds that tracing took on this machine, by the names of programs."""
    read = read_cached(TIMES)
    return {name: took for name, took in read.items() if isinstance(took, float)} if isinstance(read, dict) else {}


def untraced(programs: Iterable[Program]) -> set[Program]:
    """The programs that must be traced before runs can be planned."""
    programs = set(programs)
    keys = _direct_keys(programs)
    known = _known() if keys else {}
    return {p for p in programs if keys.get(p) not in known}


def _direct_keys(programs: Iterable[Program]) -> dict[Program, str]:
    """Direct keys of the programs that have one in this process; new hashes of modules are written to the cache folder."""
    keys = {p: direct_key(p) for p in programs if packaged(p.trial)} if in_use() else {}
    if _new:
        write_cached(MODULES, _remembered_modules())
        _new.clear()
    return keys


def _known() -> dict[str, dict[str, Any]]:
    """Facts of programs from the shipped file and the cache folder, by direct key."""
    return shipped_programs() | _checked(read_cached(PROGRAMS))


@functools.cache
def shipped_programs() -> dict[str, dict[str, Any]]:
    """Facts of the theories' programs, by direct key; empty without the file, which only a wheel has."""
    try:
        return _checked(json.loads(SHIPPED.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _checked(read: Any) -> dict[str, dict[str, Any]]:
    """The entries of a file that have the form that this version writes."""
    try:
        return {key: facts for key, facts in read.items() if {n: type(value) for n, value in facts.items()} == FACTS}
    except AttributeError:
        return {}


def traced_facts(program: Program) -> dict[str, Any] | None:
    """Facts of a program by tracing it; None if the trial raises."""
    try:
        one = tracing.trace_pure(program)
        unknown = why_unknown(program) is not None  # its runs depend on code that no hash tells
        return {"fingerprint": f"{CALLS_BACK}{secrets.token_hex(8)}" if unknown else one.fingerprint, **needs(one.jaxpr.jaxpr)}
    except BaseException as error:
        let_through(error)
        return None


def direct_key(program: Program) -> str:
    """The direct key of one of the package's programs; programs with equal keys have equal texts."""
    facts = (str(program.trial), program.label, identity_of(program), devices().platform, surroundings())
    return hashlib.sha256(repr((facts, modules_behind(program.trial.module, *FACT_MAKERS))).encode()).hexdigest()[:20]


@functools.cache
def surroundings() -> str:
    """Hash of what tracing depends on besides code: Python, libraries, options, and the package's data files."""
    files = [file for file in sorted(PACKAGE.rglob("*")) if file.is_file() and file.suffix != ".py" and _is_data(file)]
    data = [(file, file.read_bytes()) for file in files]
    contents = [(file.relative_to(PACKAGE).as_posix(), hashlib.sha256(read).hexdigest() + edited(file)) for file, read in data]
    python = sys.implementation.name, tuple(sys.version_info), manual_hash()
    return hashlib.sha256(repr((python, versions_of(TRACING), switches(), contents)).encode()).hexdigest()


def manual_hash() -> str:
    """Hash of the interpreter's manual, a text of some trials: it differs between patch releases, and between distributions."""
    spec = importlib.util.find_spec("pydoc_data.topics") if importlib.util.find_spec("pydoc_data") else None
    return content_hash(Path(spec.origin)) if spec is not None and spec.origin is not None else ""


def versions_of(libraries: Iterable[str]) -> list[str]:
    """The versions of libraries; empty for those that are not installed."""
    found = []
    for name in libraries:
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append("")
    return found


def _is_data(file: Path) -> bool:
    return NO_DATA.isdisjoint(file.relative_to(PACKAGE).parts[:-1])


@functools.cache
def modules_behind(*modules: str, within: str = "jaxdyn") -> str:
    """Hash of the code of some of the package's modules and of all modules ``within`` it that they import, directly or not.

    Where one of them has changed since this process began, no other process has the hash.
    """
    behind, todo = dict[str, str](), list(modules)
    while todo:
        name = todo.pop()
        if name in behind or (file := _file(name)) is None:
            continue
        behind[name], imports = code_and_imports(file)
        todo += [outer for one in imports for outer in _prefixes(one) if f"{outer}.".startswith(f"{within}.")]
    return hashlib.sha256(repr(sorted(behind.items())).encode()).hexdigest()


def _prefixes(name: str) -> Iterator[str]:
    """Names of a module and of the packages around it."""
    parts = name.split(".")
    yield from (".".join(parts[: i + 1]) for i in range(1, len(parts)))


def _file(name: str) -> Path | None:
    """The file of a module of the package; None if the name is not a module's (a function's, say)."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return next((p for p in (path.with_name(f"{path.name}.py"), path / "__init__.py") if p.is_file()), None)


@functools.cache
def _remembered_modules() -> dict[str, tuple[str, list[str]]]:
    read = read_cached(MODULES)
    return {key: (code, imports) for key, (code, imports) in read.items()} if isinstance(read, dict) else {}


@functools.cache
def code_and_imports(file: Path) -> tuple[str, list[str]]:
    """Hash of a module's code, and the modules of the package that it imports; remembered by the file's content."""
    content = file.read_bytes()
    package = ".".join(("jaxdyn", *file.relative_to(PACKAGE).parent.parts))
    key = hashlib.sha256(repr((sys.version_info[:2], package)).encode() + content).hexdigest()[:20]
    remembered = _remembered_modules()
    if key not in remembered:
        remembered[key] = _new[key] = code_hash(content), sorted(set(imports_of(content, package)))
    code, imports = remembered[key]
    return code + edited(file), imports
