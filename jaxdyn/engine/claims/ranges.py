"""Ranges and roles of a setting's numbers: ``lr: jd.Swept = jd.field(0.01, above=0)``.

The referee asks what becomes of a claim when nothing is learned, when training goes on for twice the time, or when a treatment is
left out. So it has to know which numbers are which. A role is declared, ``settle: int = jd.field(3000, role="time")``, or follows
from the field's name:

=========  ========================================================================================================
role       names
=========  ========================================================================================================
rate       ``lr``, ``eta``, ``rate``, with a letter or a word for the part that it moves (``eta_z``, ``rate_a``, ``code_lr``,
           ``value_rate``)
time       ``steps``, ``epochs``, and those of a part (``code_steps``), ``horizon``, ``span``, ``time``; ``every`` and
           ``interval``, the steps between two records, in a setting without one of these: the number of records times this is
           the number of steps
treatment  by declaration alone: what the claim says something about, such as a share of wrong labels
breach     by declaration alone: what is there for controls, such as a factor by which the law is wrong
none       all others
=========  ========================================================================================================
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from jaxdyn.engine.claims.fields import Swept
from jaxdyn.errors import UsageError, shown

__all__ = ["ROLES", "Range", "Role", "counts_steps", "field", "numeric_fields", "role_of", "roles_of"]

Role: TypeAlias = Literal["rate", "time", "treatment", "breach", "none"]
ROLES: tuple[Role, ...] = get_args(Role)

HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
}

RATE = re.compile(r"(\w+_)?(lr|rate)|(rate|eta)(_[a-z])?")
COUNT = re.compile(r"(\w+_)?(steps|epochs)")  # numbers of steps
SPAN = re.compile(r"horizon|span|time")  # times, of which the number of steps is made with the rate
BETWEEN = re.compile(r"every|interval")  # numbers of steps between two records


@dataclasses.dataclass(frozen=True)
class Range:
    """The allowed range of a number, by at most two bounds; a tuple is in the range if all its entries are.

    Args:
        bounds: ``above`` or ``at_least``, ``below`` or ``at_most``, each with its number, the lower one first.
        whole: only whole numbers are in the range.
    """

    bounds: tuple[tuple[str, float], ...]
    whole: bool = False

    def __str__(self) -> str:
        """The range in words: ``above 0 and at most 1``."""
        return " and ".join(f"{word.replace('_', ' ')} {bound}" for word, bound in self.bounds)

    @property
    def allowed(self) -> str:
        """What a number in the range is, in words: ``a whole number at least 1``."""
        return f"a whole number {self}".rstrip() if self.whole else str(self)

    def as_dict(self) -> dict[str, float]:
        """The bounds by name, as written to JSON."""
        return dict(self.bounds)

    def refuse(self, name: str, value: Any) -> None:
        """Refuse a Python or NumPy number outside the range; tracers, placeholders and None are accepted.

        Raises:
            UsageError: ``name=value is not allowed: name is above 0``.
        """
        one = "every entry of " if isinstance(value, tuple | list) else ""
        for entry in _entries(value):
            if isinstance(entry, bool | np.bool_ | str):
                raise UsageError(f"{name}={value} is not allowed: {one}{name} is a number")
            if not isinstance(entry, int | float | np.number):
                continue
            fraction = self.whole and not float(entry).is_integer()
            if fraction or not all(HOLDS[word](entry, bound) for word, bound in self.bounds):
                raise UsageError(f"{name}={value} is not allowed: {one}{name} is {self.allowed}")


def _entries(value: Any) -> list[Any]:
    """All numbers of a value: a single number, or the numbers of a nested tuple."""
    return [e for part in value for e in _entries(part)] if isinstance(value, tuple | list) else [value]


def field(
    default: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    whole: bool = False,
    role: Role | None = None,
    doc: str = "",
) -> Any:
    """A field with a range, a role or a meaning: ``share: jd.Swept = jd.field(0.5, at_least=0, below=1, doc="of wrong labels")``.

    Ranges and roles are for numbers and tuples of numbers, a meaning is for any field. Without ``doc`` it is what the setting's
    docstring says of the field under ``Args``, or a comment at the end of its line (:func:`jaxdyn.engine.base.meanings.meanings`).

    A setting refuses values outside the range when it is made, in grids and on the command line. :func:`jaxdyn.require` in
    ``__post_init__``, which runs afterwards, checks relations between fields.

    Args:
        default: the field's default, inside the range; None is allowed if the field's type allows it.
        above: the number is greater than this.
        at_least: the number is this or more.
        below: the number is less than this.
        at_most: the number is this or less.
        whole: the number is a whole one, such as a count of steps that a trial reads by ``jnp.round(s.every).astype(int)``: 2.5
            would be rounded there without a word.
        role: what it is to training, ``rate``, ``time``, ``treatment``, ``breach`` or ``none``, where its name does not tell
            it (as above).
        doc: what it is, in a few words, without a period: shown where the field is.

    Raises:
        UsageError: there is neither a bound nor ``whole=True`` nor a role nor a meaning, there are two lower or upper bounds, no
            number satisfies them, or there is no such role.
    """
    given = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    bounds = {word: bound for word, bound in given.items() if bound is not None}
    if role is not None and role not in ROLES:
        raise UsageError(f"role={shown(role)} is not allowed: it is {', '.join(ROLES[:-1])} or {ROLES[-1]}")
    if not isinstance(doc, str):
        raise UsageError(f"doc={shown(doc)} is not allowed: it is text")
    metadata: dict[str, Any] = {key: value for key, value in (("role", role), ("doc", doc)) if value}
    if not isinstance(whole, bool):
        raise UsageError(f"whole={shown(whole)} is not allowed: it is True or False")
    if bounds or not (whole or metadata):
        _refuse_bounds(bounds)
    if bounds or whole:
        metadata["range"] = Range(tuple(bounds.items()), whole)
    return dataclasses.field(default=default, metadata=metadata)


def _refuse_bounds(bounds: Mapping[str, float]) -> None:
    """Refuse bounds that do not make a range."""
    if not bounds:
        raise UsageError(
            "jd.field needs a bound (above, at_least, below or at_most), whole=True, a role or a doc; "
            "without them write x: jd.Swept = 1.0"
        )
    if bounds.keys() >= {"above", "at_least"} or bounds.keys() >= {"below", "at_most"}:
        raise UsageError(f"jd.field takes one lower and one upper bound, got {', '.join(bounds)}")
    if not all(isinstance(b, int | float) and math.isfinite(b) for b in bounds.values()):
        raise UsageError(f"the bounds of jd.field are finite numbers, got {', '.join(map(str, bounds.values()))}")
    if len(bounds) == 2:
        low, high = bounds.values()
        if low > high or (low == high and bounds.keys() != {"at_least", "at_most"}):
            raise UsageError(f"no number is {Range(tuple(bounds.items()))}")


# roles


def numeric_fields(cls: type[Any]) -> list[str]:
    """The fields of a setting that hold one number."""
    return [name for name, hint in cls.hints.items() if hint in (int, float, Swept)]  # type: ignore[attr-defined]


def role_of(cls: type[Any], name: str) -> Role | None:
    """The role of a field of a setting; None if it holds no number."""
    if name not in numeric_fields(cls):
        return None
    declared: Role | None = _declared(cls).get(name)
    if declared is not None:
        return declared
    if RATE.fullmatch(name):
        return "rate"
    return "time" if _is_total(cls, name) or (BETWEEN.fullmatch(name) and not _totals(cls)) else "none"


def roles_of(cls: type[Any]) -> dict[str, Role]:
    """The role of every field that holds a number."""
    return {name: found for name in numeric_fields(cls) if (found := role_of(cls, name)) is not None}


def counts_steps(name: str) -> bool:
    """Whether a time, by its name, is a number of steps: at half the rate they lead half as far, unlike a span of time."""
    return SPAN.fullmatch(name) is None


def _declared(cls: type[Any]) -> dict[str, Role]:
    return {f.name: f.metadata["role"] for f in dataclasses.fields(cls) if "role" in f.metadata}


def _is_total(cls: type[Any], name: str) -> bool:
    """Whether a field, by its name, says how long training lasts as a whole."""
    named = COUNT.fullmatch(name) or SPAN.fullmatch(name)
    return bool(named) and name not in _declared(cls)


def _totals(cls: type[Any]) -> list[str]:
    declared = [name for name, found in _declared(cls).items() if found == "time"]
    return declared + [name for name in numeric_fields(cls) if _is_total(cls, name)]
