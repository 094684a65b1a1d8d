"""Settings: the complete, typed, frozen description of one run, and grids of them.

A setting's *swept* fields (annotated ``Swept`` or ``Code``) are numbers that are traced and vmapped; all other fields are
*static* and choose the program. A setting is a pytree whose children are the swept fields. Only this module takes settings apart
into static and swept fields (:func:`split`, :func:`columns`) and puts them together again (:func:`join`).
"""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import math
import numbers
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.engine.observables import SELECTION, TAKEN
from jaxdyn.engine.ranges import Range, field
from jaxdyn.engine.switch import Code, code
from jaxdyn.errors import LONGEST, UsageError, is_traced, shown

__all__ = ["Grid", "Swept", "coerce", "columns", "field_table", "grid", "join", "one_line", "setting", "split"]

T = TypeVar("T")
Swept = float | Float[Array, ""]  # a traced number
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
        raise UsageError(f"{cls.__name__}.{name} is {_type_name(cls.hints[name])}: a range is for numbers and tuples of numbers")
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


def _type_name(hint: Any) -> str:
    if hint == Swept:
        return "a number"
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(map(str, typing.get_args(hint)))
    return {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}.get(hint, str(hint))


def _allowed(cls: type[Any], name: str) -> str:
    """The values that a field allows, in words, without its range."""
    return "one of " + ", ".join(cls.code_names[name]) if name in cls.code_names else _type_name(cls.hints[name])


def field_table(grid: Grid) -> list[dict[str, Any]]:
    """A row for every field: name, kind (swept or static), type in words, range, and value or values in this grid.

    A range is a dict such as ``{"above": 0, "at_most": 1}``, empty if every number is allowed.
    """
    cls = grid.setting
    rows = []
    for name in cls.hints:
        value = list(grid.axes[name]) if name in grid.axes else getattr(grid.base, name)
        value = str(value) if isinstance(value, Code) else value
        kind = "swept" if name in cls.swept_fields else "static"
        bounds = cls.ranges[name].as_dict() if name in cls.ranges else {}
        rows.append({"name": name, "kind": kind, "type": _allowed(cls, name), "range": bounds, "value": value})
    return rows


def _convert(cls: type[Any], name: str, value: Any) -> Any:
    """``value``, from Python or from text, converted to the type of the field; ``ValueError``/``TypeError`` if that fails."""
    hint, value = cls.hints[name], _plain(value)
    if name in cls.code_names:
        value = str(value) if isinstance(value, Code) else value
        if not isinstance(value, str) or value not in cls.code_names[name]:
            raise ValueError
        return value
    if typing.get_origin(hint) is typing.Literal:
        return _option(typing.get_args(hint), value)
    if typing.get_origin(hint) in (types.UnionType, typing.Union) and hint != Swept:
        if value is None or (isinstance(value, str) and value == "none"):
            return None
        hint = next(h for h in typing.get_args(hint) if h is not type(None))
    return _of_type(hint, value)


def _option(options: tuple[Any, ...], value: Any) -> Any:
    """The option that equals a value or is written like it; ``ValueError`` if there is none."""
    if isinstance(value, bool | int | float | str | None):
        for option in options:
            same = value == option and isinstance(value, bool) is isinstance(option, bool)  # to Python, 1 and True are equal
            if same or (isinstance(value, str) and value == str(option)):
                return option
    raise ValueError


def _plain(value: Any) -> Any:
    """A NumPy or JAX scalar, or an array without axes, as a Python number; other values, also NumPy's dates, stay unchanged."""
    kind = getattr(getattr(value, "dtype", None), "kind", "M")
    scalar = kind not in "mM" and getattr(value, "ndim", 1) == 0 and not is_traced(value)
    return value.item() if scalar and hasattr(value, "item") else value


def _of_type(hint: Any, value: Any) -> Any:
    """``value`` converted to a type; ``ValueError``, ``TypeError`` or ``KeyError`` if that fails."""
    value = _plain(value)
    if hint is bool:
        return value if isinstance(value, bool) else {"true": True, "false": False}[value]
    if hint is int:
        whole = int(_number_or_text(value))
        if not isinstance(value, str) and whole != value:
            raise ValueError
        return whole
    if hint is float or hint == Swept:
        number = float(_number_or_text(value)) + 0.0  # turns -0.0 into 0.0, since labels do not distinguish them
        if not math.isfinite(number):
            raise ValueError
        return number
    if hint is str:
        if not isinstance(value, str):
            raise TypeError
        return value
    if typing.get_origin(hint) is tuple:
        return _tuple(typing.get_args(hint), value)
    return value


def _number_or_text(value: Any) -> Any:
    """The value itself if it is a Python number (not a bool) or a str; ``TypeError`` otherwise."""
    if isinstance(value, bool | np.generic) or not isinstance(value, str | numbers.Real | decimal.Decimal):
        raise TypeError
    return value


def _tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """A tuple of these types, from a text with colons or from a sequence."""
    array = isinstance(value, np.ndarray | jax.Array) and value.ndim == 1
    if not (array or isinstance(value, str | tuple | list | range)):
        raise TypeError
    parts = value.split(":") if isinstance(value, str) else tuple(value)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(parts)
    return tuple(_of_type(kind, part) for kind, part in zip(kinds, parts, strict=True))


def one_line(value: Any) -> str:
    """A value's repr for a message: on one line, cut if it is long; traced values and arrays as dtype and shape."""
    if is_traced(value) or (getattr(value, "ndim", 0) != 0 and hasattr(value, "dtype") and hasattr(value, "shape")):
        return shown(value)
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to print integers of several thousand digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def coerce(cls: type[Any], name: str, value: Any) -> Any:
    """``value``, from Python or from the command line's text, converted for field ``name`` of setting ``cls``.

    Raises:
        UsageError: unknown field, wrong type, not a finite number, or outside the field's range; the message lists what is allowed.
    """
    if name not in cls.hints:
        raise UsageError(f"{cls.__name__} has no field {name!r}; it has: {', '.join(cls.hints)}")
    try:
        converted = _convert(cls, name, value)
    except (ValueError, TypeError, KeyError, OverflowError):
        allowed = _allowed(cls, name)
        finite = "finite " if cls.hints[name] in (Swept, float) else ""
        words = allowed.replace("a number", f"a {finite}number")
        raise UsageError(f"{name}={one_line(value)} is not allowed: {name} is {words}") from None
    if name in cls.ranges:
        cls.ranges[name].refuse(name, converted)
    return converted


def _fits_dtype(cell: Any) -> None:
    """Refuse a number that overflows or underflows in the setting's precision."""
    dtype = _precision(cell)
    facts = jnp.finfo(dtype)
    smallest, largest = float(facts.tiny), float(facts.max)
    for name in type(cell).swept_fields:
        value = getattr(cell, name)
        if isinstance(value, float) and value and not smallest <= abs(value) <= largest:
            span = f"from {smallest:.2g} to {largest:.2g}"
            raise UsageError(f"{name}={value!r} is not allowed: {dtype} holds numbers of size {span}, and 0")


def _labels_differ(axes: Mapping[str, tuple[Any, ...]], cells: Sequence[Any]) -> None:
    """Refuse two values of an axis that round to the same number in the setting's precision."""
    for dtype in {_precision(cell) for cell in cells}:
        for name in (n for n in axes if n in type(cells[0]).swept_fields and n not in type(cells[0]).code_names):
            rounded = np.asarray(axes[name], dtype).astype(float)
            first = set(np.unique(rounded, return_index=True)[1].tolist())
            if again := [value for i, value in enumerate(axes[name]) if i not in first]:
                raise UsageError(f"{name}={again[0]!r} is not allowed: another value of this axis is the same number in {dtype}")


def _precision(setting_: Any) -> np.dtype[Any]:
    """The dtype of the swept numbers: the static field ``dtype`` if there is one, else float64."""
    name = getattr(setting_, "dtype", "float64")
    try:
        dtype = jnp.dtype(name)
        if jnp.issubdtype(dtype, jnp.floating):
            return dtype
    except (TypeError, ValueError, SyntaxError):  # NumPy reads "," as a list of types
        pass
    raise UsageError(f"dtype={name!r} is not allowed: it is float64, float32, bfloat16 or float16")


@dataclasses.dataclass(frozen=True)
class Grid:
    """Settings to run: the product of ``axes`` (field -> values), with all other fields as in ``base``."""

    base: Any
    axes: Mapping[str, tuple[Any, ...]]

    @property
    def setting(self) -> type[Any]:
        """The setting's class."""
        return type(self.base)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values on each axis."""
        return tuple(len(v) for v in self.axes.values())

    def cells(self) -> list[Any]:
        """All settings, the last axis varying fastest."""
        try:
            cells = [
                dataclasses.replace(self.base, **dict(zip(self.axes, values, strict=True)))
                for values in itertools.product(*self.axes.values())
            ]
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error
        for cell in cells:
            _fits_dtype(cell)
        _labels_differ(self.axes, cells)
        return cells

    def replace(self, /, **fields: Any) -> Grid:
        """The same grid with some fields overridden: a list (or range or array) makes an axis, anything else a fixed value."""
        axes, fixed = dict(self.axes), {}
        for name, value in fields.items():
            if isinstance(value, jax.Array) and not is_traced(value):
                value = np.asarray(value)
            value = _plain(value)
            if isinstance(value, list | range | np.ndarray):
                values = tuple(coerce(self.setting, name, v) for v in value)
                if not values:
                    raise UsageError(f"{name}: an axis of a grid needs at least one value")
                if len(set(values)) < len(values):
                    raise UsageError(f"{name}: the values of an axis must differ, got {', '.join(map(str, values))}")
                axes[name] = values
            else:
                fixed[name] = coerce(self.setting, name, value)
                if name in axes:  # judges expect their axes: an overridden axis stays, with one value
                    axes[name] = (fixed[name],)
        first = {name: values[0] for name, values in axes.items()}
        try:
            return Grid(dataclasses.replace(self.base, **{**first, **fixed}), axes)
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error


def grid(cls: type[Any], /, **fields: Any) -> Grid:
    """A grid over setting ``cls``: fields given as list, range or array are axes, whose product is run; others are fixed.

    ``jd.grid(MySetting, lr=[0.1, 0.2], width=[32, 64], depth=2)`` has 4 cells.

    Raises:
        UsageError: a class that is not decorated, an unknown field, or a value that is not allowed.
    """
    if not isinstance(cls, type) or "hints" not in vars(cls):
        name = cls.__name__ if isinstance(cls, type) else one_line(cls)
        raise UsageError(f"{name} is not a setting: decorate its class with @jd.setting, and give the class to jd.grid")
    return Grid(cls(), {}).replace(**fields)
