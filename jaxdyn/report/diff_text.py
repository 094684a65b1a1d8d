"""The text of ``jaxdyn diff``: a paragraph for each claim in which something differs, then the calls as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxdyn.engine.judging.check import VALUE_DIGITS, bound_text
from jaxdyn.report.plain import plain
from jaxdyn.wording import plural

__all__ = ["lines"]

OUTCOMES = {True: "passed", False: "failed", None: "undecided"}
REJECTED = {True: "rejected", False: "not rejected", None: None}
SIGNS = {True: "✓", False: "✗", None: "?"}
DIGESTS = {"judge": "judge, controls and rivals", "code": "code behind judge and figure", "plot": "figure", "programs": "programs"}
DIGESTS |= {"runs": "which runs were made"}
SIGNED = ("check", "gate", "counterpart", "cell")  # kinds of numbers of which the claim asks that they pass
TEXTS = ("statement", "printed", "title", "tested", "caption", "referee")  # too long to be shown
TIMES = {"wall": "wall time", "cpu": "processor time"}
WHOLE, HASH, MOST = 17, 12, 3  # digits of a whole float; characters of a hash, and hashes in a line


def lines(found: Any) -> Iterator[str]:
    """The differences as lines; one sentence if there are none."""
    if found.empty:
        times = " and ".join(f"the {TIMES[name]}, {_times(pair)}" for name, pair in found.seconds.items())
        yield f"Nothing differs in {plural(found.compared, 'claim')}{f' but {times}' if times else ''}."
        return
    yield f"A: {_origin(found.a)}"
    yield f"B: {_origin(found.b)}"
    order = sorted(found.claims, key=lambda c: (not c.verdict_differs, not (c.moved or c.turned)))  # worst first, else as they are
    for claim in order:
        yield ""
        yield from _claim(claim)
    yield ""
    for name, ids in (("A", found.only_a), ("B", found.only_b)):
        if ids:
            yield f"only in {name}: {', '.join(ids)}"
    yield from (f"{name}: {_pair(pair)}" for name, pair in found.environment.items())
    yield from (f"{TIMES[name]}: {_times(pair)}" for name, pair in found.seconds.items())
    yield _summary(found)


def _origin(facts: Mapping[str, Any]) -> str:
    commit = facts["commit"] and f"commit {facts['commit']}"
    unfinished = facts["unfinished"] and f"unfinished: {facts['unfinished']}"
    more = filter(None, (facts["date"], commit, plural(facts["claims"], "claim"), unfinished))
    return f"{facts['path']} ({', '.join(map(str, more))})"


def _claim(claim: Any) -> Iterator[str]:
    """What differs in one claim."""
    yield claim.id
    if claim.verdict[0] != claim.verdict[1]:
        message = f": {plain(claim.message)}" if isinstance(claim.message, str) else ""
        yield f"  verdict: {claim.verdict[0]} → {claim.verdict[1]} (expected {claim.expected}){message}"
    yield from (f"  at {place}: {_pair_or_one(*pair)}" for place, pair in claim.cells.items())
    yield from (f"  {_number(number)}" for number in claim.numbers if not number.within)
    if within := sum(number.within for number in claim.numbers):
        yield f"  {plural(within, 'number')} changed within the intervals"
    for name, pair in claim.opponents.items():
        yield f"  {plain(name)}: {_pair_or_one(*(REJECTED[rejected] for rejected in pair))}"
    for name, pair in claim.facts.items():
        yield f"  {name}: changed" if name in TEXTS else f"  {plain(name)}: {plain(_pair(pair))}"
    yield from (f"  setting {name}: {_pair(pair)}" for name, pair in claim.settings.items())
    yield from (f"  {name}: {_pair(pair)}" for name, pair in claim.runs.items())
    yield from (f"  {DIGESTS[name]}: {_hashes(pair[0])} → {_hashes(pair[1])}" for name, pair in claim.digests.items())
    yield from (f"  {TIMES[name]} of its programs: {_times(pair)}" for name, pair in claim.seconds.items())


def _pair_or_one(before: str | None, after: str | None) -> str:
    """Two words, or the one and in which result it is."""
    if before is None or after is None:
        return f"only in B, {after}" if before is None else f"only in A, {before}"
    return f"{before} → {after}"


def _number(number: Any) -> str:
    """A number on one line."""
    kind = "" if number.kind == "check" else "at " if number.kind == "cell" else f"{number.kind} "
    if number.only_in is not None:
        return f"· {kind}{plain(number.name)}: only in {number.only_in.upper()}"
    sign = SIGNS[number.passed[1]] if number.kind in SIGNED else "·"
    if number.value[0] == number.value[1] and number.interval[0] == number.interval[1]:
        parts = [_value(number, 1, VALUE_DIGITS)]
    else:
        digits = _digits(*number.value)
        how = ", moved" if number.moved else ", on other runs" if number.other_runs else ""
        parts = [f"{_value(number, 0, digits)} → {_value(number, 1, digits)}{how}"]
    if number.passed[0] is not number.passed[1]:
        parts.append(" → ".join(OUTCOMES[passed] for passed in number.passed))
    if number.bound_changed:
        parts.append("bound " + " → ".join("none" if bound is None else _bound(bound, number.bound) for bound in number.bound))
    return f"{sign} {kind}{plain(number.name)}: {', '.join(parts)}"


def _value(number: Any, i: int, digits: int) -> str:
    """A value with its interval."""
    ends = number.interval[i]
    interval = "" if ends is None else f" [{_shown(ends[0], digits, '-inf')}, {_shown(ends[1], digits, 'inf')}]"
    return _shown(number.value[i], digits, "none" if number.kind == "resolution" else "no number") + interval


def _shown(value: Any, digits: int, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.{digits}g}"


def _digits(a: Any, b: Any) -> int:
    """The fewest digits, four or more, with which two numbers look different."""
    pair = [x for x in (a, b) if x is not None]
    known = (d for d in range(VALUE_DIGITS, WHOLE) if len(pair) < 2 or f"{a:.{d}g}" != f"{b:.{d}g}")
    return VALUE_DIGITS if a == b else next(known, WHOLE)


def _bound(bound: Any, pair: Sequence[Any]) -> str:
    known = [ends for ends in pair if ends is not None]
    digits = max(_digits(low, high) for low, high in zip(known[0], known[-1], strict=True))
    return bound_text(bound, digits)


def _pair(pair: Sequence[Any]) -> str:
    return f"{_text(pair[0])} → {_text(pair[1])}"


def _text(value: Any) -> str:
    """A value of a setting or of the environment as text; a list as on the command line."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_text(v)}" for k, v in value.items()) or "none"
    if isinstance(value, bool | None):
        return "none" if value is None else str(value).lower()
    return str(value) or "none"


def _hashes(value: Any) -> str:
    """One hash or several, cut; many are counted."""
    each = [str(one).rpartition("-")[2][:HASH] for one in (value if isinstance(value, list) else [value])]
    return ", ".join(each[:MOST]) + (f" and {len(each) - MOST} more" if len(each) > MOST else "")


def _times(pair: Sequence[float]) -> str:
    a, b = pair
    digits = max(0, 1 - math.floor(math.log10(min(a, b))))
    return f"{a:.{digits}f} s → {b:.{digits}f} s (× {b / a:.2g})"


def _summary(found: Any) -> str:
    """How many claims, verdicts and numbers differ."""
    verdicts = sum(claim.verdict_differs for claim in found.claims)
    moved, turned = sum(len(claim.moved) for claim in found.claims), sum(len(claim.turned) for claim in found.claims)
    differ = f"{plural(verdicts, 'verdict')} {'differs' if verdicts == 1 else 'differ'}" if verdicts else "no verdict differs"
    numbers = (
        f"{plural(moved, 'number')} moved or {'has' if moved == 1 else 'have'} another outcome" if moved else "no number moved"
    )
    opponents = f", {plural(turned, 'opponent')} {'has' if turned == 1 else 'have'} another outcome" if turned else ""
    return f"{plural(found.compared, 'claim')} in both: {differ}, {numbers}{opponents}"
