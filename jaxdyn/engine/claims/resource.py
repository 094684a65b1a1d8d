"""Resources of a trial besides its setting and its key; claims are skipped where one is missing.

Resources are optional libraries, and arrays that all runs of a program share and that no trial makes: the weights of a published
model, a text. Arrays are an argument of the compiled program, neither vmapped nor constants, so that a model's weights are in
memory once.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import secrets
import threading
import types
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import jax

from jaxdyn.engine.base.failure import PACKAGE
from jaxdyn.engine.base.reference import Ref, resolve
from jaxdyn.engine.base.syntax import Unfollowed, reached
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.claims.setting import join, split
from jaxdyn.errors import Absent, UsageError

__all__ = ["Resource", "absence", "identity_of", "imports", "loaded", "resource", "shapes", "shared_by", "why_unknown"]

T = TypeVar("T", bound=Callable[..., Any])
_memory: dict[int, tuple[Any, set[str]]] = {}  # loads by their numbers, and what each of them changes itself: lists, caches
_read_by: dict[int, tuple[Any, str]] = {}  # loads by their numbers, and the code that has read what is in memory
MOST_LOADED = 2  # resources in memory at a time: a model and, for a control, another of the same size
_reading = threading.Lock()  # a thread that compiles ahead may want the same arrays at the same time


class _Described(Protocol):
    """The parts of a program that resources depend on: its trial, its setting and its static fields."""

    @property
    def trial(self) -> Ref: ...

    @property
    def setting(self) -> Ref: ...

    @property
    def static(self) -> tuple[tuple[str, Any], ...]: ...


@dataclasses.dataclass(frozen=True)
class Resource:
    """Arrays that a trial gets besides its setting and its key.

    Args:
        load: ``setting -> pytree`` of arrays; may read static fields only.
        identity: ``setting -> str``: names the arrays that ``load`` returns, without reading them all; raises :class:`Absent`.
    """

    load: Callable[[Any], Any]
    identity: Callable[[Any], str]


def resource(load: Callable[[Any], Any], identity: Callable[[Any], str]) -> Callable[[T], T]:
    """Decorator of a trial ``(setting, key, shared) -> Observables``; all runs get what ``load(setting)`` returns.

    Args:
        load: ``setting -> pytree`` of arrays; it may read static fields only.
        identity: ``setting -> str``: names these arrays, by a checksum and how they are processed, say; stored runs depend on it
            and on all of a user's own code and values that ``load`` reaches, and all trials with this ``load`` share the arrays of
            one identity. It raises :class:`Absent` if they are not on this machine: claims on the trial are then skipped.
    """

    def decorate(trial: T) -> T:
        trial.resource = Resource(load, identity)  # type: ignore[attr-defined]
        return trial

    return decorate


def imports(module: str, *, install: str, when: Callable[[Any], bool] | None = None) -> Callable[[T], T]:
    """Decorator of a trial that imports a library which may not be installed: its claims are then skipped, before any run.

    Args:
        module: the name under which it is imported.
        install: what pip installs, e.g. ``jaxdyn[suite]``.
        when: ``setting -> bool``: which settings need it; by default all. It may read static fields only.

    Raises:
        UsageError: ``module`` or ``install`` is not a name.
    """
    if not (isinstance(module, str) and module.strip()) or not (isinstance(install, str) and install.strip()):
        raise UsageError(f"module={module!r:.60}, install={install!r:.60} are not allowed: they are names")

    def decorate(trial: T) -> T:
        needed = (*getattr(trial, "imports", ()), (module, install, when))
        trial.imports = needed  # type: ignore[attr-defined]
        return trial

    return decorate


def _missing_library(trial: Callable[..., Any], cell: Any) -> str | None:
    """A sentence that names a library that a trial cannot import; None if there is none."""
    for module, install, when in getattr(trial, "imports", ()):
        if (when is None or when(cell)) and importlib.util.find_spec(module) is None:
            return f"the trial needs the library {module}: pip install '{install}'"
    return None


def _of(trial: Callable[..., Any]) -> Resource | None:
    found: Resource | None = getattr(trial, "resource", None)
    return found


def absence(trial: Callable[..., Any], grids: list[Grid]) -> str | None:
    """A sentence that names what a trial needs on these grids and this machine lacks; None if nothing is missing."""
    needed = _of(trial)
    if needed is None and not hasattr(trial, "imports"):
        return None
    cells = {repr(split(cell)[0]): cell for grid in grids for cell in grid.cells()}
    try:
        for cell in cells.values():
            if (reason := _missing_library(trial, cell)) is not None:
                return reason
            if needed is not None:
                needed.identity(cell)
    except Absent as reason:
        return str(reason)
    return None


def _default(program: _Described) -> Any:
    """A setting with the program's static fields and default swept fields."""
    cls = resolve(program.setting)
    swept = {name: getattr(cls(), name) for name in cls.swept_fields}
    return join(cls, program.static, {name: v.index if isinstance(v, Code) else v for name, v in swept.items()})


def identity_of(program: _Described) -> str:
    """The identity of the arrays that a program's runs share, and the code that reads them; empty if they share none.

    Raises:
        Absent: they are not on this machine.
    """
    needed = _of(resolve(program.trial))
    return "" if needed is None else needed.identity(_default(program)) + _code_of(needed.load, resolve(program.setting))


def why_unknown(program: _Described) -> str | None:
    """What the code that reads a program's shared arrays reaches and nobody can look into, in words; None if all is known."""
    needed = _of(resolve(program.trial))
    try:
        if needed is not None and not _is_packaged(needed.load):
            reached(needed.load, resolve(program.setting))
    except Unfollowed as unknown:
        return str(unknown)
    return None


def _is_packaged(load: Callable[[Any], Any]) -> bool:
    """Whether a function is the package's own: its ``identity`` counts the code."""
    return isinstance(load, types.FunctionType) and Path(load.__code__.co_filename).is_relative_to(PACKAGE) and not load.__closure__


def _code_of(load: Callable[[Any], Any], setting: type) -> str:
    """Hash of all that a user's ``load`` reaches; empty for the package's own, and new in every process if it is unknown."""
    if _is_packaged(load):
        return ""
    try:
        facts = reached(load, setting)
    except Unfollowed:
        return f"unknown {_process()}"
    _, own = _memory.get(id(load), (load, set()))
    return hashlib.sha256(repr(sorted((k, v) for k, v in facts.items() if k not in own)).encode()).hexdigest()[:20]


@functools.cache
def _process() -> str:
    return secrets.token_hex(8)


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """Arrays to be read: equal ``load`` and ``identity`` mean the same arrays, for all trials and settings."""

    key: Any  # the ``load``, or its number if it is an object that cannot be hashed
    identity: str
    load: Callable[[Any], Any] = dataclasses.field(compare=False)
    setting: Any = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=MOST_LOADED)
def loaded(wanted: _Wanted) -> Any:
    """The arrays, on the device; those that were read last stay in memory."""
    with jax.enable_x64(True):
        return jax.device_put(wanted.load(wanted.setting))


def shared_by(program: _Described) -> Any:
    """The arrays that all runs of a program share, or an empty tuple; equal arrays of several programs are in memory once."""
    if (needed := _of(resolve(program.trial))) is None:
        return ()
    setting, cls = _default(program), resolve(program.setting)
    key = needed.load if isinstance(needed.load, Hashable) else id(needed.load)
    wanted = _Wanted(key, needed.identity(setting), needed.load, setting)
    with _reading:
        if _is_packaged(needed.load):
            return loaded(wanted)
        known, before = _read_by.get(id(needed.load)), _facts(needed.load, cls)
        if known is not None and known[1] != _code_of(needed.load, cls):
            loaded.cache_clear()
        arrays = loaded(wanted)
        after = _facts(needed.load, cls)
        changed = {place for place in {*before, *after} if before.get(place) != after.get(place)}
        _memory[id(needed.load)] = needed.load, _memory.get(id(needed.load), (None, set()))[1] | changed
        _read_by[id(needed.load)] = needed.load, _code_of(needed.load, cls)
    return arrays


def _facts(load: Callable[[Any], Any], setting: type) -> dict[str, str]:
    try:
        return reached(load, setting)
    except Unfollowed:
        return {}


def shapes(program: _Described) -> Any:
    """The shapes and dtypes of the arrays that all runs share."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), shared_by(program))
