"""What a function finds in memory: the values of the top-level names that it uses, in people's own modules and notebooks.

A source does not tell what its names hold: a notebook's cell is run again, a script sets ``helper.FACTOR = 3``, a table was read
when the module was imported. Compiled programs and stored runs of other values are not this function's.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.engine.failure import installed

__all__ = ["code_facts", "fixed_values", "values"]

PACKAGE = Path(__file__).parents[1]
DEPTH = 8  # of containers within containers
MUTATORS = {"append", "add", "extend", "insert", "update", "setdefault", "pop", "remove", "clear"}  # methods of containers


def values(function: Callable[..., Any]) -> str:
    """Hash of the values of all names that a function uses, directly or through other functions of people's own; "" without any."""
    return _digest(_holdings(function), whole=True)


def fixed_values(function: Callable[..., Any]) -> str:
    """The same of numbers, words, arrays and tuples alone: lists and dicts may be memories that other code changes."""
    return _digest(_holdings(function), whole=False)


def _digest(found: dict[str, Any], whole: bool) -> str:
    facts = [(name, fact) for name, value in sorted(found.items()) if (fact := _fact(value, whole)) is not None]
    return hashlib.sha256(repr(facts).encode(errors="replace")).hexdigest() if facts else ""


def _holdings(function: Callable[..., Any]) -> dict[str, Any]:
    """Names with their modules, and what they hold; those that a function assigns itself are left out."""
    found: dict[str, Any] = {}
    assigned: set[str] = set()
    todo, met = list(_functions(function)), set[int]()
    while todo:
        one = todo.pop()
        if id(one) in met:
            continue
        met.add(id(one))
        if not _has_file(one):
            found[f"{one.__module__}:{one.__qualname__}"] = code_facts(one.__code__)
        for owner, name, value in _used(one):
            if isinstance(value, list | dict | set) and _changes(one.__code__):
                continue  # a memory
            found[f"{owner}:{name}"] = value
            todo += _functions(value)
        assigned |= {f"{one.__module__}:{name}" for name in _assigned(one.__code__)}
    return {name: value for name, value in found.items() if name not in assigned}


def _used(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    """Owner, name and value of the names that a function's code mentions: of its module, and of own modules that it mentions."""
    mentioned = dict.fromkeys(_mentioned(function.__code__))
    here = {name: function.__globals__[name] for name in mentioned if name in function.__globals__}
    yield from ((function.__module__, name, value) for name, value in here.items())
    for module in (value for value in here.values() if isinstance(value, types.ModuleType) and _own(value.__name__, value)):
        yield from ((module.__name__, name, vars(module)[name]) for name in mentioned if name in vars(module))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    inner = [(name, cell.cell_contents) for name, cell in cells if cell != types.CellType()]
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    inner += [(f"default {i}", value) for i, value in enumerate(defaults)]
    yield from ((f"{function.__module__}:{function.__qualname__}", name, value) for name, value in inner)


def _functions(value: Any) -> Iterator[types.FunctionType]:
    """People's own functions behind a value: itself, what it wraps, the methods of a class."""
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _functions(part)
    elif isinstance(value, types.FunctionType):
        if _own(value.__module__, inspect.getmodule(value)):
            yield value
    elif isinstance(value, type) and _own(value.__module__, inspect.getmodule(value)):
        yield from (f for f in vars(value).values() if isinstance(f, types.FunctionType) and f.__module__ == value.__module__)


def _own(name: str | None, module: Any) -> bool:
    """Whether a module is neither of the package nor installed."""
    file = getattr(module, "__file__", None)
    if name is None or name.partition(".")[0] == PACKAGE.name or name in ("builtins", "dataclasses"):
        return False
    return file is None or not (installed(Path(file)) or Path(file).is_relative_to(PACKAGE))


def _has_file(function: types.FunctionType) -> bool:
    return Path(function.__code__.co_filename).is_file()


def _mentioned(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _mentioned(constant)


def _assigned(code: types.CodeType) -> set[str]:
    return {str(i.argval) for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL"}


def _changes(code: types.CodeType) -> bool:
    """Whether a function's code changes containers in place."""
    stores = any(i.opname == "STORE_SUBSCR" for i in dis.get_instructions(code))
    return (
        stores
        or not MUTATORS.isdisjoint(_mentioned(code))
        or any(_changes(c) for c in code.co_consts if isinstance(c, types.CodeType))
    )


def _fact(value: Any, whole: bool, depth: int = 0) -> Any:
    """A value in a form that is the same in every process; None for what has none."""
    if isinstance(value, bool | int | float | complex | str | bytes | None):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray | np.generic | jax.Array) and not isinstance(value, jax.core.Tracer):
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        array = np.asarray(value)
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        return ("array", array.dtype.str, array.shape, hashlib.sha256(content).hexdigest())
    if depth == DEPTH:
        return None
    if isinstance(value, functools.partial):
        return ("partial", *(_fact(part, True, depth + 1) for part in (value.args, value.keywords)))
    if isinstance(value, tuple) or (whole and isinstance(value, list)):
        return (type(value).__name__, [_fact(v, whole, depth + 1) for v in value])
    if isinstance(value, frozenset) or (whole and isinstance(value, set)):
        return (type(value).__name__, sorted(repr(_fact(v, whole, depth + 1)) for v in value))
    if whole and isinstance(value, dict):
        return ("dict", [(repr(_fact(k, whole, depth + 1)), _fact(v, whole, depth + 1)) for k, v in value.items()])
    return None


def code_facts(code: types.CodeType) -> tuple[Any, ...]:
    """What a compiled function does, where there is no source: its instructions, names and constants."""
    constants = tuple(code_facts(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)
    return repr(code.co_code), code.co_names, constants
