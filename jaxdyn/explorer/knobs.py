"""The knobs of a claim: a slider, a list or a text field for every field of its setting, with the values to choose from.

A slider moves over *stops*, which are the values as text: the scale (linear or logarithmic) is decided here, and a front end only
shows it. Values are written as for ``--set``, so that a text field may also sweep a field: ``0.1,0.2``.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxdyn.engine.base.meanings import meanings
from jaxdyn.engine.base.parsing import parse_sets
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.fields import Swept
from jaxdyn.engine.claims.grid import Grid, field_table
from jaxdyn.engine.claims.ranges import Range
from jaxdyn.engine.verification.task import value_text
from jaxdyn.errors import UsageError

__all__ = ["Knob", "Stops", "knobs", "read_back", "stops", "text_of", "worlds"]

STEPS = 100  # steps of a slider
DIGITS = 3  # significant digits of a stop, except for the claim's own values
ROOM = 10.0  # a logarithmic slider extends by this factor beyond the claim's values
DECADES = 2.0  # values between two bounds get a logarithmic scale if they span this many decades
SEEDS = "a number of seeds, or FROM:TO"


@dataclasses.dataclass(frozen=True)
class Stops:
    """The values of a slider in order, as text; ``log``: whether the scale is logarithmic."""

    values: tuple[str, ...]
    log: bool


@dataclasses.dataclass(frozen=True)
class Knob:
    """One knob.

    Args:
        name: the field's name; ``seeds`` for the seeds.
        takes: the allowed values in words.
        meaning: what it is; empty: nobody said.
        own: the claim's own value or values, written as for ``--set``.
        swept: whether the field is traced, so that moving the knob compiles nothing.
        group: ``main`` for fields that the claim sweeps or its controls change, ``more`` for other swept fields, ``fixed`` for
            static ones.
        options: the values to choose from, if they are a finite list.
        stops: the slider's values, for a number.
    """

    name: str
    takes: str
    own: str
    swept: bool
    group: str
    options: tuple[str, ...] = ()
    stops: Stops | None = None
    meaning: str = ""

    def to_json(self) -> dict[str, Any]:
        """The knob as the front end reads it."""
        return dataclasses.asdict(self)


def knobs(claim: Claim, scale: str = "quick") -> list[Knob]:
    """The knobs of a claim: the fields that it is about first, the seeds last; none for a value that has no text of its own."""
    grid = claim.grid(scale)
    known = _known(claim)
    first = {*grid.axes, *(name for fields in worlds(claim).values() for name in fields)}
    rows = [row for row in field_table(grid) if read_back(grid, {row["name"]: row["value"]}) is not None]
    listed = [_knob(row, grid.setting, known[row["name"]], row["name"] in first, _atlas_ranges(claim)) for row in rows]
    listed.append(Knob("seeds", SEEDS, str(claim.seed_count(scale)), False, "fixed"))
    return sorted(listed, key=lambda knob: ("main", "more", "fixed").index(knob.group))


def worlds(claim: Claim) -> dict[str, dict[str, str]]:
    """Those controls of the claim that are settings which text can name: name -> fields with their values as text."""
    breaches = {name: control.breach for name, control in claim.controls.items() if isinstance(control.breach, Mapping)}
    texts = {name: read_back(claim.quick, breach) for name, breach in breaches.items()}
    return {name: fields for name, fields in texts.items() if fields is not None}


def read_back(grid: Grid, values: Mapping[str, Any]) -> dict[str, str] | None:
    """Values of fields as text for ``--set``; None where the text would be read as other values, as of nested tuples."""
    texts = {name: text_of(value) for name, value in values.items()}
    try:
        meant = grid.replace(**values)
        again = grid.replace(**parse_sets([f"{name}={text}" for name, text in texts.items()]))
    except ValueError:
        return None
    return texts if _plain(field_table(again)) == _plain(field_table(meant)) else None


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The values of fields, an axis of one value like this value."""
    values = [row["value"] for row in rows]
    return [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]


def _knob(row: Mapping[str, Any], cls: Any, known: Sequence[Any], first: bool, mapped: Mapping[str, Any]) -> Knob:
    name, swept, hint = row["name"], row["kind"] == "swept", cls.hints[row["name"]]
    bounds = cls.ranges.get(name, Range(()))
    takes = str(row["type"])
    if bounds.bounds:
        takes += (" " if takes.startswith("a ") else ", ") + str(bounds)
    group = "fixed" if not swept else "main" if first else "more"
    options = _options(cls, name, hint)
    line = None
    if swept and not options and hint == Swept:
        line = stops([v for v in known if isinstance(v, int | float)], bounds, mapped.get(name))
    return Knob(name, takes, text_of(row["value"]), swept, group, options, line, meanings(cls).get(name, ""))


def _options(cls: Any, name: str, hint: Any) -> tuple[str, ...]:
    """All values of a switch, a choice of words or a truth value; empty for other fields."""
    if name in cls.code_names:
        return tuple(cls.code_names[name])
    if typing.get_origin(hint) is typing.Literal:
        return tuple(value_text(option) for option in typing.get_args(hint))
    return ("false", "true") if hint is bool else ()


def _known(claim: Claim) -> dict[str, list[Any]]:
    """The claim's values for each field: the default, and those of both grids and of the controls."""
    cls = claim.quick.setting
    known: dict[str, list[Any]] = {name: [getattr(cls(), name)] for name in cls.hints}
    for grid in (claim.grid("quick"), claim.grid("paper")):
        for row in field_table(grid):
            known[row["name"]] += row["value"] if isinstance(row["value"], list) else [row["value"]]
    for control in claim.controls.values():
        for name, value in control.breach.items() if isinstance(control.breach, Mapping) else ():
            known[name] += value if isinstance(value, list | range) else [value]
    return known


def _atlas_ranges(claim: Claim) -> dict[str, tuple[float, float, bool]]:
    """Ranges of the claim's maps in the atlas: field -> low, high, whether the scale is logarithmic."""
    by_field = {}
    for stored in library.maps(claim.theory):
        for axis in stored.over if stored.claim == claim.id else ():
            name, _, text = axis.partition("=")
            parts = text.split(":")
            if len(parts) > 1:
                by_field[name] = float(parts[0]), float(parts[1]), parts[2:] == ["log"]
    return by_field


def stops(known: Iterable[float], bounds: Range, mapped: tuple[float, float, bool] | None = None) -> Stops:
    """The values of a slider.

    Between two bounds the scale is linear, unless the known values span two decades. With one bound or none it is logarithmic if
    all known values are positive, and extends a decade beyond them. Zero is the first stop of a logarithmic scale if it is known,
    or if it is the field's lower bound and allowed.

    Args:
        known: the claim's values for the field; each of them is a stop.
        bounds: the field's range.
        mapped: low, high and scale, if the claim was mapped over the field.
    """
    # scale and ends
    values = sorted({float(v) for v in known})
    positive = [v for v in values if v > 0]
    low, high = _ends(bounds)
    zero = 0.0 in values or _allows(bounds, 0.0) and low == 0.0
    if mapped is not None:
        first, last, log = mapped
    elif math.isfinite(low) and math.isfinite(high):
        log = low >= 0 and bool(positive) and math.log10(high / positive[0]) >= DECADES
        first, last = (max(low, positive[0] / ROOM) if log else low), high
    else:
        log = bool(positive) and values[0] >= 0 and low >= -math.inf and (low >= 0 or len(positive) == len(values))
        if log:
            first, last = max(low, positive[0] / ROOM), min(high, positive[-1] * ROOM)
        else:
            span = max([abs(v) for v in values] + [values[-1] - values[0]]) or 1.0
            first, last = max(low, 0.0 if values[0] >= 0 else values[0] - span), min(high, values[-1] + span)
    # the stops between them
    shares = [i / STEPS for i in range(STEPS + 1)]
    line = [first * (last / first) ** s for s in shares] if log else [first + (last - first) * s for s in shares]
    line = [float(round(v)) if bounds.whole else _rounded(v) for v in line]
    numbers = {*line} | {v for v in values if first <= v <= last} | ({0.0} if log and zero else set())
    return Stops(tuple(text_of(v) for v in sorted(numbers) if _allows(bounds, v)), log)


def _ends(bounds: Range) -> tuple[float, float]:
    """The lower and the upper bound, infinite if there is none."""
    ends = {word in ("above", "at_least"): float(bound) for word, bound in bounds.bounds}
    return ends.get(True, -math.inf), ends.get(False, math.inf)


def _allows(bounds: Range, value: float) -> bool:
    try:
        bounds.refuse("value", value)
    except UsageError:
        return False
    return True


def text_of(value: Any) -> str:
    """A value as text for ``--set``; whole floating-point numbers are written without ``.0``: ``10,20``."""
    if isinstance(value, list | range):
        return ",".join(map(text_of, value))
    return repr(value).removesuffix(".0") if isinstance(value, float) else value_text(value)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
