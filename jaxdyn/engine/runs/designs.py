"""Designs of sweeps: values along a range, and points drawn within ranges instead of a full grid."""

from __future__ import annotations

import inspect
import math
import types
import typing
import warnings
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from jaxdyn.engine.base.parsing import Span, check_span
from jaxdyn.engine.claims.description import field_texts
from jaxdyn.engine.claims.fields import Swept, allowed_words, coerce, plain
from jaxdyn.engine.claims.grid import Points, grid, points
from jaxdyn.errors import UsageError, one_line, whole

__all__ = ["METHODS", "MOST_POINTS", "is_numeric", "random_grid", "values_along"]

METHODS = "random", "sobol"
MOST_POINTS = 10**6
PARTS = 2**53  # of a range: shares are multiples of one of so many
EXACT = 1e-3  # a logarithmic range of whole numbers that is so short, relative to its ends, is measured from its low end
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def is_numeric(cls: type[Any], name: str) -> bool:
    """Whether a field of a setting holds one number, of which a range makes sense."""
    return _kind(cls, name) is not None


def values_along(cls: type[Any], name: str, span: Span, count: int) -> list[Any]:
    """So many values of a field from one end of a range to the other, in equal steps or factors.

    Of a whole number the values are rounded, and each is taken once.

    Raises:
        UsageError: the field is unknown or no number, or the ends make no range of it.
    """
    low, high = _ends(cls, name, span)
    inner = np.arange(1, count - 1) / max(count - 1, 1)
    if _kind(cls, name) is not int:
        return [low, *_between(low, high, span.log, inner), high][: max(count, 1)]
    if span.log:
        values = [low, *map(round, _between(low, high, True, inner)), high]
    else:
        steps = max(count - 1, 1)
        values = [low + (2 * i * (high - low) + steps) // (2 * steps) for i in range(steps)] + [high]
    return list(dict.fromkeys(min(max(value, low), high) for value in values[: max(count, 1)]))


def random_grid(
    cls: type[Any],
    n: int,
    fields: Mapping[str, Any] | None = None,
    /,
    *,
    seed: int = 0,
    method: Literal["random", "sobol"] = "random",
    **named: Any,
) -> Points:
    """``n`` settings drawn at random within ranges: for many fields a better use of ``n`` runs than a grid.

    ``jd.random_grid(MySetting, 64, lr=(1e-3, 1e-1, "log"), width=[8, 16], depth=2)`` has 64 points. :func:`jaxdyn.sweep` takes
    it in place of a grid; the Dataset has the dimension ``point``, along which ``lr`` and ``width`` are coordinates. With the same
    seed the first points stay the same for a larger ``n``. Each combination of static fields is a program of its own.

    Args:
        cls: the setting's class.
        n: number of points.
        fields: fields by name, if one is called ``seed`` or ``method``.
        seed: of the draw.
        method: ``random``, independent uniform draws, or ``sobol``, a scrambled Sobol sequence, which covers the ranges more
            evenly, best if ``n`` is a power of two.
        **named: fields: a number's range ``(low, high)`` or ``(low, high, "log")``, uniform in the number or in its logarithm, with
            both ends for whole numbers; a list, from which values are drawn; anything else is the value of all points.

    Raises:
        UsageError: a field is unknown, a range is empty, a value is not allowed, or nothing is drawn.
    """
    base, n, seed = grid(cls).base, whole("n", n, least=1, most=MOST_POINTS), whole("seed", seed, least=0, most=2**32 - 1)
    if not (isinstance(method, str) and method in METHODS):
        raise UsageError(f"method={one_line(method)} is not allowed: method is {' or '.join(METHODS)}")
    given = {**(fields or {}), **named}
    drawn, fixed = dict[str, Span | list[Any]](), dict[str, Any]()
    for name in sorted(given, key=[*type(base).hints, *given].index):  # whatever the order in which they are given
        choice = _choice(cls, name, given[name])
        (fixed if choice is None else drawn)[name] = given[name] if choice is None else choice
    if not drawn:
        raise UsageError("nothing is drawn: give a field a range, lr=(1e-3, 1e-1, 'log'), or a list of values")
    shares = _sobol(len(drawn), n, seed) if method == "sobol" else [_uniform(name, n, seed) for name in drawn]
    columns = {name: _at(cls, name, choice, share) for (name, choice), share in zip(drawn.items(), shares, strict=True)}
    return points(cls, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], **fixed)


def _choice(cls: type[Any], name: str, value: Any) -> Span | list[Any] | None:
    """What a field is drawn from; None for a fixed value."""
    value = plain(value)
    if isinstance(value, Span):
        _ends(cls, name, value)
        return value
    if isinstance(value, list | range | np.ndarray):
        allowed = [coerce(cls, name, one) for one in value]
        if not allowed:
            raise UsageError(f"{name}=[] is not allowed: it is drawn from at least one value")
        return allowed
    if not isinstance(value, tuple) or (name in cls.hints and _kind(cls, name) is None):  # type: ignore[attr-defined]
        coerce(cls, name, value)
        return None
    if len(value) not in (2, 3) or value[2:] not in ((), ("log",)):
        raise UsageError(f"{name}={one_line(value)} is not allowed: give (low, high), (low, high, 'log') or a list of values")
    low, high = (coerce(cls, name, end) for end in value[:2])
    span = Span(low, high, len(value) == 3)
    _ends(cls, name, span)
    return span


def _ends(cls: type[Any], name: str, span: Span) -> tuple[Any, Any]:
    """The ends of a range, converted to the field's type."""
    if name in cls.hints and _kind(cls, name) is None:  # type: ignore[attr-defined]
        raise UsageError(f"{name} takes no range: it is {allowed_words(cls, name)}")
    low, high = (coerce(cls, name, int(end) if float(end).is_integer() else end) for end in (span.low, span.high))
    if _kind(cls, name) is int:
        low, high = int(low), int(high)
    check_span(f"{name}={':'.join(field_texts([low, high]))}{':log' * span.log}", low, high, span.log)
    return low, high


def _kind(cls: type[Any], name: str) -> type[int] | type[float] | None:
    """The type, int or float, of a field that holds such a number, or None instead of one; None for any other field."""
    hint = cls.hints.get(name)  # type: ignore[attr-defined]
    if hint != Swept and typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint, *others = (part for part in typing.get_args(hint) if part is not types.NoneType)
        hint = None if others else hint
    whole = name in cls.ranges and cls.ranges[name].whole  # type: ignore[attr-defined]
    return int if hint is int or (whole and hint == Swept) else float if hint in (float, Swept) else None


def _uniform(name: str, n: int, seed: int) -> Numbers:
    """Numbers from 0 to 1 for one field; those of other fields do not depend on it."""
    return np.random.default_rng([seed, *name.encode()]).random(n)


def _sobol(dimensions: int, n: int, seed: int) -> Numbers:
    """A scrambled Sobol sequence [dimension, point]."""
    from scipy.stats import qmc

    word = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"  # its name until SciPy 1.15
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of numbers that are no power of two
        sequence: Numbers = qmc.Sobol(dimensions, scramble=True, **{word: np.random.default_rng(seed)}).random(n).T
    return sequence


def _at(cls: type[Any], name: str, choice: Span | list[Any], share: Numbers) -> list[Any]:
    """The values of a field at shares from 0 to 1 of what it is drawn from."""
    if isinstance(choice, list):
        return [choice[i] for i in (share * len(choice)).astype(int).tolist()]
    low, high = _ends(cls, name, choice)
    if _kind(cls, name) is not int:
        return _between(low, high, choice.log, share)
    if choice.log and high + 1 - low < EXACT * low:  # floats near the ends are too far apart; shares of the logarithm are not
        ratio = np.expm1(share * np.log1p((high + 1 - low) / low))
        values = [low + int(one * low) for one in ratio.tolist()]
    elif choice.log:
        values = list(map(int, _between(low, high + 1, True, share)))
    else:  # every whole number has a share of its own
        values = [low + int(part * PARTS) * (high + 1 - low) // PARTS for part in share.tolist()]
    return [min(max(value, low), high) for value in values]


def _between(low: float, high: float, log: bool, share: Numbers) -> list[float]:
    """The numbers at shares of a range, also of a logarithmic one whose ends have no finite ratio."""
    if not log:
        values = low + share * (high - low)
    elif math.isfinite(ratio := float(high) / float(low)):
        values = low * ratio**share
    else:
        values = float(low) ** (1 - share) * float(high) ** share
    return np.clip(values, low, high).tolist()  # type: ignore[no-any-return]
