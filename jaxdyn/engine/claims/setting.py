"""Settings: the complete, typed, frozen description of one run.

A setting's *swept* fields (annotated ``Swept`` or ``Code``) are numbers that are traced and vmapped; all other fields are
*static* and choose the program. A setting is a pytree whose children are the swept fields. Only this module takes settings apart
into static and swept fields (:func:`split`, :func:`columns`) and puts them together again (:func:`join`).
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.engine.claims.code_field import Code, code
from jaxdyn.engine.claims.fields import Swept, coerce, type_name
from jaxdyn.engine.claims.observables import SELECTION, TAKEN
from jaxdyn.engine.claims.ranges import Range, field
from jaxdyn.errors import UsageError, one_line

__all__ = ["columns", "join", "setting", "split"]

T = TypeVar("T")
RESERVED = (  # name that a field cannot have -> what the name already means
    TAKEN
    | SELECTION
    | dict.fromkeys(("claim", "scale", "seeds", "by", "out", "cluster", "load"), "an argument of jd.verify")
    | {"claims": "an argument of jd.verify_many"}
    | dict.fromkeys(("over", "cells"), "an argument of jd.map")
    | dict.fromkeys(("self", "cls"), "an argument of jd.grid")
    | dict.fromkeys(("hints", "ranges", "swept_fields", "static_fields", "code_names"), "an attribute of every setting")
)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(code, field, dataclasses.field))
def setting(cls: type[T]) -> type[T]:
    """Class decorator that makes a setting: a frozen keyword-only dataclass, registered as a pytree of its swept fields.

    ``__post_init__`` sees only Python numbers within their ranges and switches with a known name: flattening and unflattening never
    run ``__init__``, so tracers and placeholders pass through ``vmap``, ``tree_map`` and ``eval_shape``. A subclass
    inherits the ranges, and its parent's ``__post_init__`` if it has none of its own.

    Raises:
        UsageError: if a field has no default or one outside its range, its name is reserved for the engine, a
            ``Code`` has no names, or a field with a range is not a number.
    """
    return _registered(cls)  # type: ignore[no-any-return]


def _registered(cls: Any) -> Any:
    """The decorated class, with the attributes that the engine reads."""
    own_check = getattr(cls, "__post_init__", None)  # its own, else its parent's

    # checks when a setting is made: switches, ranges, static values, then the author's own

    def post_init(self: Any) -> None:
        for name, names in cls.code_names.items():
            value = getattr(self, name)
            if not isinstance(value, Code):
                object.__setattr__(self, name, Code.of(coerce(cls, name, value), names))
        for name, allowed in cls.ranges.items():
            allowed.refuse(name, getattr(self, name))
        for name in cls.static_fields:
            _refuse_objects(cls, name, getattr(self, name))
            object.__setattr__(self, name, coerce(cls, name, getattr(self, name)))
        if own_check is not None:
            own_check(self)

    # the dataclass, and checks of its fields
    cls.__post_init__ = post_init
    cls = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    hints = typing.get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    for f in dataclasses.fields(cls):
        _refuse_name(cls, f.name)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise UsageError(f"{cls.__name__}.{f.name} needs a default value")
        if (hints[f.name] is Code) != ("names" in f.metadata):
            raise UsageError(f'{cls.__name__}.{f.name}: a switch is declared as {f.name}: jd.Code = jd.code("one", "other")')
    # attributes that the engine reads
    cls.hints = {n: hints[n] for n in names}
    cls.swept_fields = tuple(n for n in names if hints[n] in (Swept, Code))
    cls.static_fields = tuple(n for n in names if n not in cls.swept_fields)
    cls.code_names = {f.name: f.metadata["names"] for f in dataclasses.fields(cls) if "names" in f.metadata}
    own_ranges = {f.name: f.metadata["range"] for f in dataclasses.fields(cls) if "range" in f.metadata}
    cls.ranges = {**getattr(cls, "ranges", {}), **own_ranges}
    for name, allowed in cls.ranges.items():
        _check_range(cls, name, allowed)
    for name in (n for n in cls.swept_fields if n not in cls.code_names):
        if isinstance(default := getattr(cls, name, 0.0), float) and not math.isfinite(default):
            raise UsageError(f"{cls.__name__}.{name}={default} is not allowed: {name} is a finite number")

    # the pytree: children are the swept fields
    def flatten_with_keys(self: Any) -> tuple[list[Any], tuple[Any, ...]]:
        children = [(jax.tree_util.GetAttrKey(n), getattr(self, n)) for n in cls.swept_fields]
        return children, tuple(getattr(self, n) for n in cls.static_fields)

    def unflatten(aux: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return _assemble(cls, dict(zip(cls.static_fields, aux, strict=True)), dict(zip(cls.swept_fields, children, strict=True)))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    return cls


def _refuse_name(cls: Any, name: str) -> None:
    """Refuse a field whose name is reserved."""
    taken = "Python itself" if name.startswith("__") else RESERVED.get(name)
    if taken is not None:
        raise UsageError(f"{cls.__name__}.{name} is not allowed: the name {name!r} is taken ({taken}); rename the field")


def _refuse_objects(cls: Any, name: str, value: Any) -> None:
    """Refuse a static value that cannot be written to stored results or sent to other processes."""
    if isinstance(value, tuple):
        for part in value:
            _refuse_objects(cls, name, part)
    elif not isinstance(value, bool | int | float | str | None):
        allowed = "a static field holds a number, a word, true or false, None, or a tuple of these"
        cure = "name a function by a word, and choose it in the trial" if callable(value) else "give the values that make it"
        raise UsageError(f"{cls.__name__}.{name}={one_line(value)} is not allowed: {allowed} ({cure})")


def _check_range(cls: Any, name: str, allowed: Range) -> None:
    """Refuse a range on a field that is not numeric, and a default outside its range."""
    if not _numeric(cls.hints[name]):
        raise UsageError(f"{cls.__name__}.{name} is {type_name(cls.hints[name])}: a range is for numbers and tuples of numbers")
    allowed.refuse(f"{cls.__name__}.{name}", getattr(cls, name))


def _numeric(hint: Any) -> bool:
    """Whether a type hint stands for numbers, tuples of numbers, or either with None."""
    parts = [part for part in typing.get_args(hint) if part not in (Ellipsis, types.NoneType)]
    compound = typing.get_origin(hint) in (tuple, types.UnionType, typing.Union)
    return hint in (int, float, Swept) or (compound and bool(parts) and all(map(_numeric, parts)))


def _assemble(cls: type[Any], static: Mapping[str, Any], swept: Mapping[str, Any]) -> Any:
    """A setting made from its fields without running ``__init__`` (values may be tracers)."""
    new = object.__new__(cls)
    for name, value in (*static.items(), *swept.items()):
        object.__setattr__(new, name, value)
    return new


def split(setting_: Any) -> tuple[tuple[tuple[str, Any], ...], tuple[Any, ...]]:
    """A setting's static fields with their names, and the values of its swept fields, with switches as names."""
    cls = type(setting_)
    values = (getattr(setting_, n) for n in cls.swept_fields)
    return tuple((n, getattr(setting_, n)) for n in cls.static_fields), tuple(str(v) if isinstance(v, Code) else v for v in values)


def columns(cls: type[Any], static: Sequence[tuple[str, Any]], cells: Sequence[Sequence[Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """One array per swept field, of the values that :func:`split` returned for each cell, in the setting's precision."""
    dtype = jnp.dtype(dict(static).get("dtype", "float64"))
    arrays = {}
    for i, name in enumerate(cls.swept_fields):
        names = cls.code_names.get(name)
        column = [names.index(cell[i]) if names else float(cell[i]) for cell in cells]
        arrays[name] = np.asarray(column, np.int32 if names else dtype)
    return arrays


def join(cls: type[Any], static: Sequence[tuple[str, Any]], swept: Mapping[str, Any]) -> Any:
    """The setting of one run inside a program, from its static fields and one number from each column."""
    codes = cls.code_names
    return _assemble(cls, dict(static), {n: Code(v, codes[n]) if n in codes else v for n, v in swept.items()})
