"""Fields of settings: values from Python or text are converted to the field's type, or refused in a sentence."""

from __future__ import annotations

import decimal
import math
import numbers
import types
import typing
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.base.parsing import plain_digits, vanishes
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.errors import UsageError, is_traced, one_line

__all__ = ["Swept", "allowed_words", "coerce", "plain", "type_name"]

if TYPE_CHECKING:  # a number where the setting is written, an array where a trial reads it: no checker can tell which
    Swept = Any
else:
    Swept = int | float | Float[Array, ""]  # a number; inside a trial, a traced one


def type_name(hint: Any) -> str:
    """A type in words."""
    if hint == Swept:
        return "a number"
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(map(str, typing.get_args(hint)))
    words = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
    return words.get(hint) or (f"of type {hint.__name__}" if isinstance(hint, type) else str(hint))


def allowed_words(cls: type[Any], name: str) -> str:
    """The values that a field allows, in words, without its range."""
    if name in cls.code_names:
        return "one of " + ", ".join(cls.code_names[name])
    whole = name in cls.ranges and cls.ranges[name].whole
    return type_name(int if whole and cls.hints[name] == Swept else cls.hints[name])


class _Unheld(ValueError):
    """A value that no field can hold, or that could be two: the message says why."""


def coerce(cls: type[Any], name: str, value: Any) -> Any:
    """``value``, from Python or from the command line's text, converted for field ``name`` of setting ``cls``.

    Raises:
        UsageError: the field is unknown, or the value has the wrong type, is not finite, or lies outside the field's range.
    """
    if name not in cls.hints:
        raise UsageError(f"{cls.__name__} has no field {name!r}; it has: {', '.join(cls.hints)}")
    try:
        converted = _convert(cls, name, value)
    except _Unheld as error:
        raise UsageError(f"{name}={one_line(value)} is not allowed: {error}") from None
    except (ValueError, TypeError, KeyError, OverflowError):
        allowed = allowed_words(cls, name)
        finite = "finite " if cls.hints[name] in (Swept, float) else ""
        words = allowed.replace("a number", f"a {finite}number")
        raise UsageError(f"{name}={one_line(value)} is not allowed: {name} is {words}{_in_parentheses(cls, name)}") from None
    if name in cls.ranges:
        try:
            cls.ranges[name].refuse(name, converted)
        except UsageError as error:
            raise UsageError(f"{error}{_in_parentheses(cls, name)}") from None
    return converted


def _in_parentheses(cls: type[Any], name: str) -> str:
    """What a field means, in parentheses."""
    meaning = meanings(cls).get(name)
    return f" ({meaning})" if meaning else ""


def _convert(cls: type[Any], name: str, value: Any) -> Any:
    """``value``, from Python or from text, converted to the type of the field; ``ValueError``/``TypeError`` if that fails."""
    hint, value = cls.hints[name], plain(value)
    if name in cls.code_names:
        value = str(value) if isinstance(value, Code) else value
        if not isinstance(value, str) or value not in cls.code_names[name]:
            raise ValueError
        return value
    if typing.get_origin(hint) is typing.Literal:
        return _option(typing.get_args(hint), value)
    if typing.get_origin(hint) in (types.UnionType, typing.Union) and hint != Swept:
        if isinstance(value, str) and value == "none" and str in typing.get_args(hint):
            raise _Unheld("it could be None or this text; give None in Python, or another text")
        if value is None or (isinstance(value, str) and value == "none"):
            return None
        hint = next(h for h in typing.get_args(hint) if h is not type(None))
    return _of_type(hint, value)


def _option(options: tuple[Any, ...], value: Any) -> Any:
    """The option that equals a value or its text; ``ValueError`` if there is none."""
    if isinstance(value, bool | int | float | str | None):
        for option in options:
            if value == option and isinstance(value, bool) is isinstance(option, bool):  # to Python, 1 and True are equal
                return option
        for option in options:
            if isinstance(value, str) and value == str(option):
                return option
    raise ValueError


def plain(value: Any) -> Any:
    """A NumPy or JAX scalar, or an array without axes, as a Python number; other values, also NumPy's dates, stay unchanged."""
    kind = getattr(getattr(value, "dtype", None), "kind", "M")
    scalar = kind not in "mM" and getattr(value, "ndim", 1) == 0 and not is_traced(value)
    return value.item() if scalar and hasattr(value, "item") else value


def _of_type(hint: Any, value: Any) -> Any:
    """``value`` converted to a type; ``ValueError``, ``TypeError`` or ``KeyError`` if that fails."""
    value = plain(value)
    if hint is bool:
        return value if isinstance(value, bool) else {"true": True, "false": False}[value]
    if hint is int:
        whole = int(_number_or_text(value))
        if not isinstance(value, str) and whole != value:
            raise ValueError
        if not -(2**63) <= whole < 2**63:  # neither JAX nor a result's coordinate holds it
            raise _Unheld("int64 holds whole numbers from -2**63 to 2**63 - 1")
        return whole
    if hint is float or hint == Swept:
        number = float(_number_or_text(value)) + 0.0  # turns -0.0 into 0.0, since labels do not distinguish them
        if not math.isfinite(number):
            raise ValueError
        if number == 0 and (vanishes(value) if isinstance(value, str) else value != 0):
            raise _Unheld("float64 holds numbers of size from 2.2e-308, and 0")
        if (given := _whole(value)) is not None and given != number:  # it would be shown, and another one run
            raise _Unheld(f"float64 does not hold this whole number; the nearest is {int(number)}")
        return number
    if hint is str:
        if not isinstance(value, str):
            raise TypeError
        return value
    if typing.get_origin(hint) is tuple:
        return _tuple(typing.get_args(hint), value)
    return value


def _whole(value: Any) -> int | None:
    """A whole number that is a Python integer, or is written with digits alone; None for any other number."""
    if isinstance(value, str):
        return int(value) if value.strip().removeprefix("-").removeprefix("+").isdecimal() else None
    return value if isinstance(value, int) else None


def _number_or_text(value: Any) -> Any:
    """The value itself if it is a Python number (not a bool) or a number's text; ``TypeError`` or ``ValueError`` otherwise."""
    if isinstance(value, bool | np.generic) or not isinstance(value, str | numbers.Real | decimal.Decimal):
        raise TypeError
    return plain_digits(value) if isinstance(value, str) else value


def _tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """A tuple of these types, from a text with colons or from a sequence."""
    array = isinstance(value, np.ndarray | jax.Array) and value.ndim == 1
    if not (array or isinstance(value, str | tuple | list | range)):
        raise TypeError
    parts = value.split(":") if isinstance(value, str) else tuple(value)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(parts)
    return tuple(_of_type(kind, part) for kind, part in zip(kinds, parts, strict=True))
