"""What the report says of checks: values with their intervals, bounds, outcomes, and which check rejects which opponent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from jaxdyn.report.formatting import count, number, percent

__all__ = ["CHECK", "GATE", "OPEN", "opponents", "row", "teeth"]

# words and colours of the outcomes True, False, None; a gate that is not met refutes nothing, an open question has no failures
CHECK = {True: ("✓ passed", "passed"), False: ("✕ failed", "failed"), None: ("? undecided", "undecided")}
GATE = {True: ("✓ met", "passed"), False: ("✕ not met", "undecided"), None: ("? undecided", "undecided")}
OPEN = {True: ("within", "plain"), False: ("outside", "plain"), None: ("undecided", "plain")}


def row(check: Mapping[str, Any], words: Mapping[bool | None, tuple[str, str]] = CHECK) -> dict[str, Any]:
    """One row of a table of checks."""
    passed = _passed(check)
    needed = check.get("needed") if passed is None else None
    return {
        "name": str(check.get("name", "")),
        "passed": passed,
        "tone": words[passed][1],
        "outcome": words[passed][0],
        "needed": f"about {count(needed, 'run')} would decide" if needed else "",
        "value": check.get("value"),
        "interval": _interval(check.get("interval")),
        "bound": _bound(check),
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
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else otherwise


def _interval(value: Any) -> Markup:
    ends = _pair(value)
    if ends is None:
        return Markup("")
    low, high = (number(e) if math.isfinite(e) else Markup("−∞" if e < 0 else "∞") for e in ends)
    return Markup("{} … {}").format(low, high)


def _bound(check: Mapping[str, Any]) -> Markup:
    pair = _pair(check.get("bound"))
    if pair is None:
        return Markup(_relation(check)) + number(check.get("bound"))
    low, high = pair
    if math.isinf(low) and math.isinf(high):
        return number(None)
    if math.isinf(high):
        return Markup("at least ") + number(low)
    return Markup("at most ") + number(high) if math.isinf(low) else Markup("{} … {}").format(number(low), number(high))


def _relation(check: Mapping[str, Any]) -> str:
    """The sign between value and bound; only value, bound and outcome are known, so a tie or a missing value has none."""
    value, bound, passed = check.get("value"), check.get("bound"), bool(check.get("passed"))
    if not isinstance(value, int | float) or not isinstance(bound, int | float) or value == bound:
        return ""
    return "≤ " if (value < bound) == passed else "≥ "


def _margin(check: Mapping[str, Any]) -> Markup:
    """How far the value is from its bound: a ratio, or a gauge for an interval."""
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
    times = percent(ratio - 1) if ratio < 1.2 else number(float(f"{ratio:.2g}")) + " ×"
    return Markup("at the bound") if value == bound else times + (" below" if value < bound else " above")


def _gauge(value: float, low: float, high: float, interval: tuple[float, float] | None) -> Markup:
    """Where the value, and its interval if it has one, lies between two bounds, which are at a quarter and three quarters."""

    def place(number: float) -> float:
        return min(max(25 + 50 * (number - low) / (high - low), 1), 99)

    style = f"--at:{place(value):.0f}%"
    if interval is not None:
        style += f";--from:{place(interval[0]):.0f}%;--to:{place(interval[1]):.0f}%"
    return Markup(f'<i class="gauge{" spread" if interval else ""}" style="{style}"></i>')


# controls and rivals


def opponents(outcomes: Sequence[Mapping[str, Any]], checks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Controls or rivals with the checks that reject them; with all checks where none does.

    A bound is repeated only where it is another than that of the claim's own check.
    """
    return [_opponent(outcome, {(c.get("name"), str(c.get("bound"))) for c in checks}) for outcome in outcomes]


def _opponent(outcome: Mapping[str, Any], own: set[tuple[Any, str]]) -> dict[str, Any]:
    rejected, checks = bool(outcome.get("rejected")), outcome.get("checks") or []
    listed = [c for c in checks if _passed(c) is False] if rejected else checks
    rows = [row(c) | ({"bound": ""} if (c.get("name"), str(c.get("bound"))) in own else {}) for c in listed]
    name, reason = str(outcome.get("name", "")), str(outcome.get("reason") or "")
    return {"name": name, "rejected": rejected, "reason": reason, "checks": rows}


def teeth(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which check rejects which control or rival: a table, or a sentence where it would be full; None without opponents.

    A column without a mark is an opponent that nothing rejects, unless its runs themselves fail, as they should; a row without
    a mark is a check that rejects nothing.
    """
    rejections = {str(name): [str(o) for o in rejected] for name, rejected in (claim.get("teeth") or {}).items()}
    outcomes = [(kind, o) for kind, key in (("control", "controls"), ("rival", "rivals")) for o in claim.get(key) or []]
    if not rejections or not outcomes:
        return None
    kinds = [kind for kind, _ in outcomes]
    names = [str(o.get("name", "")) for _, o in outcomes]
    marks = [[name in rejected for name in names] for rejected in rejections.values()]
    if all(map(all, marks)):
        return {"sentence": _full(len(marks), kinds)}
    bare = [not o.get("rejected") for _, o in outcomes]
    if len(marks) == len(names) == 1:
        return {"sentence": f"The check does not reject the {kinds[0]}." if bare[0] else ""}
    first = [at > 0 and kind != kinds[at - 1] for at, kind in enumerate(kinds)]
    columns = [{"name": n, "bare": b, "first": f} for n, b, f in zip(names, bare, first, strict=True)]
    rows = [{"name": name, "bare": not rejected, "marks": m} for (name, rejected), m in zip(rejections.items(), marks, strict=True)]
    return {"sentence": "", "columns": columns, "rows": rows}


def _full(checks: int, kinds: Sequence[str]) -> str:
    """For example: Every check rejects every control and the rival."""
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    objects = " and ".join(f"the {kind}" if n == 1 else f"every {kind}" for kind, n in counts.items())
    return f"{'The check' if checks == 1 else 'Every check'} rejects {objects}."
