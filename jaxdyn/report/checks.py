"""Checks in the report: values with their intervals, bounds, outcomes, and which check rejects which opponent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from jaxdyn.engine.claims.description import digits_between
from jaxdyn.engine.judging.check import BOUND_DIGITS, VALUE_DIGITS, digits_apart
from jaxdyn.report.formatting import count, number, percent

__all__ = ["CHECK", "GATE", "fits", "reading", "row"]

# words and colours of the outcomes True, False and None; an unmet gate is not shown as a failure, since it refutes nothing
CHECK = {True: ("✓ passed", "passed"), False: ("✕ failed", "failed"), None: ("? undecided", "undecided")}
GATE = {True: ("✓ met", "passed"), False: ("✕ not met", "undecided"), None: ("? undecided", "undecided")}


def row(check: Mapping[str, Any], words: Mapping[bool | None, tuple[str, str]] = CHECK) -> dict[str, Any]:
    """One row of a table of checks."""
    passed = _passed(check)
    needed = check.get("needed") if passed is None else None
    pair, ends = _pair(check.get("bound")), check.get("interval") or ()
    digits = VALUE_DIGITS if pair is None else digits_apart((check.get("value"), *ends), pair)
    return {
        "name": str(check.get("name", "")),
        "passed": passed,
        "tone": words[passed][1],
        "outcome": words[passed][0],
        "trend": str(check.get("trend") or ""),
        "needed": f"about {count(needed, 'run')} would decide" if needed else "",
        "value": number(check.get("value"), digits),
        "interval": _interval(check.get("interval"), digits),
        "bound": _bound(check, digits),
        "margin": _margin(check),
        "worst": check.get("worst") or {},
    }


def _passed(check: Mapping[str, Any]) -> bool | None:
    passed = check.get("passed", False)
    return None if passed is None else bool(passed)


def _pair(value: Any) -> tuple[float, float] | None:
    """A lower and an upper end; JSON writes null for an infinite one."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    return _end(value[0], -math.inf), _end(value[1], math.inf)


def _end(value: Any, otherwise: float) -> float:
    return value if isinstance(value, int | float) and math.isfinite(value) else otherwise  # a whole number is shown in full


def _interval(value: Any, digits: int = VALUE_DIGITS) -> Markup:
    ends = _pair(value)
    if ends is None:
        return Markup("")
    low, high = (number(e, digits) if math.isfinite(e) else Markup("−∞" if e < 0 else "∞") for e in ends)
    return Markup("{} … {}").format(low, high)


def _bound(check: Mapping[str, Any], digits: int) -> Markup:
    pair = _pair(check.get("bound"))
    if pair is None:
        return number(check.get("bound"))  # in studies stored when bounds were single numbers
    low, high = (number(end, max(digits, BOUND_DIGITS)) for end in pair)
    if math.isinf(pair[1]):
        return number(None) if math.isinf(pair[0]) else Markup("at least ") + low
    return Markup("at most ") + high if math.isinf(pair[0]) else Markup("{} … {}").format(low, high)


def _margin(check: Mapping[str, Any]) -> Markup:
    """The distance of the value from its bound: a ratio, or a gauge if there are two bounds."""
    value, bound = check.get("value"), check.get("bound")
    if not isinstance(value, int | float) or not math.isfinite(value):
        return Markup("")
    low, high = _pair(bound) or (math.inf, -math.inf)
    if low < high and math.isfinite(low) and math.isfinite(high):
        return _gauge(value, low, high, _pair(check.get("interval")))
    sides = [b for b in (low, high, bound) if isinstance(b, int | float) and math.isfinite(b)]
    if len(sides) == 1 and value > 0 and sides[0] > 0:
        return _ratio(value, sides[0])
    return Markup("")


def _ratio(value: float, bound: float) -> Markup:
    ratio = max(value / bound, bound / value)
    if not math.isfinite(ratio):
        return Markup("below" if value < bound else "above")
    times = percent(abs(value / bound - 1)) if ratio < 1.2 else number(float(f"{ratio:.2g}")) + " ×"
    return Markup("at the bound") if value == bound else times + (" below" if value < bound else " above")


def _gauge(value: float, low: float, high: float, interval: tuple[float, float] | None) -> Markup:
    """A gauge of the value, and its interval if any, between two bounds, which are drawn at one and three quarters."""

    def place(number: float) -> float:
        return min(max(25 + 50 * (number - low) / (high - low), 1), 99)

    style = f"--at:{place(value):.0f}%"
    if interval is not None:
        style += f";--from:{place(interval[0]):.0f}%;--to:{place(interval[1]):.0f}%"
    return Markup(f'<i class="gauge{" spread" if interval else ""}" style="{style}"></i>')


# controls and rivals


def fits(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The checks, or readings, of the claim's own runs next to those of every control and rival; None without opponents.

    A column without a mark is an opponent that no check rejects (its runs themselves may fail, which also rejects it); a row
    without a mark is a check that rejects nothing.
    """
    kinds = (("control", "controls"), ("rival", "rivals"))
    outcomes = [(kind, one) for kind, key in kinds for one in claim.get(key) or []]
    if not outcomes:
        return None
    measured = bool(claim.get("readings"))
    own = claim.get("readings" if measured else "checks") or []
    # one column per opponent
    columns = [
        {
            "name": str(one.get("name", "")),
            "kind": kind,
            "rejected": bool(one.get("rejected")),
            "reason": str(one.get("reason") or ""),
            "first": at == 0 or kind != outcomes[at - 1][0],
        }
        for at, (kind, one) in enumerate(outcomes)
    ]
    # one row per check
    rows = []
    for check in own:
        cells = [_fit(one, str(check.get("name", "")), measured) for _, one in outcomes]
        bare = not measured and not any(cell["mark"] for cell in cells)
        digits = max([VALUE_DIGITS, *(digits_between((check.get("value"), cell["value"])) for cell in cells if cell["mark"])])
        cells = [cell | {"value": number(cell["value"], digits) if cell["there"] else None} for cell in cells]
        rows.append({"name": str(check.get("name", "")), "value": number(check.get("value"), digits), "cells": cells, "bare": bare})
    return {"columns": columns, "rows": rows, "measured": measured, "alone": {kind for kind, _ in outcomes} == {"control"}}


def _fit(outcome: Mapping[str, Any], name: str, measured: bool) -> dict[str, Any]:
    """The value of one check, or reading, for an opponent, and whether it rejects the opponent."""
    if measured:
        values = [r.get("value") for r in outcome.get("readings") or [] if r.get("name") == name]
        return {"value": values[0] if values else None, "there": bool(values), "mark": name in (outcome.get("apart") or [])}
    matching = [c for c in outcome.get("checks") or [] if c.get("name") == name]
    return {
        "value": matching[0].get("value") if matching else None,
        "there": bool(matching),
        "mark": bool(matching) and _passed(matching[0]) is False,
    }


def reading(one: Mapping[str, Any], records: Mapping[str, Any]) -> dict[str, Any]:
    """One row of the table of readings, with the recorded value."""
    record = records.get(str(one.get("name"))) or {}
    recorded = record.get("value")
    digits = digits_between((one.get("value"), recorded))
    return {
        "name": str(one.get("name", "")),
        "value": number(one.get("value"), digits),
        "interval": _interval(one.get("interval"), digits),
        "worst": one.get("worst") or {},
        "recorded": None if recorded is None else number(recorded, digits),
        "recorded_interval": _interval(record.get("interval"), digits),
    }
