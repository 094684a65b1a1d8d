"""``jd.diff`` and ``jaxdyn diff``: two results of ``jaxdyn verify``, compared claim by claim.

A number *moves* when the intervals of both results are disjoint; a number without an interval is an interval of length 0. Only
of runs with the same settings and seeds, though: such a number, say the worst of all runs, is another one for other seeds. Two
numbers are the same, whatever their intervals, when they differ by at most :data:`ROUNDING` of the largest of their sizes and of
the finite ends of their bounds. A number that becomes infinite or NaN, or ceases to be so, moves. A resolution moves when it
changes by a factor above :data:`BLUNTER`.

All that a claim's entry says is compared, and a field of a later version is, too, unless it is named in :data:`ELSEWHERE` or
:data:`LEFT_OUT`; only of what results of an earlier version lack is nothing said.

In every pair, the first is of ``a`` and the second of ``b``; None stands for what is not known or not there.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.parsing import from_home
from jaxdyn.errors import UsageError, one_line, shown
from jaxdyn.report import diff_text
from jaxdyn.report.results import Ends, Number, numbers_of, read_whole

__all__ = ["ClaimDiff", "Diff", "NumberDiff", "diff", "entries_of"]

Pair: TypeAlias = "tuple[Any, Any]"
Pairs: TypeAlias = "Mapping[str, Pair]"
ROUNDING = 1e-6
SLOWER, SHORTEST = 1.5, 1.0  # times are named from this ratio on, if the longer one has so many seconds
ENVIRONMENT = "commit python jaxdyn jax jaxlib diffrax optax numpy platform device".split()
MADE_WITH = ("jax", "python", "platform")  # only under the same of these, fingerprints and hashes of code can be compared
PAIRED = "value interval bound passed".split()
RUNS = "scale seeds runs diverged outside look".split()
# of an entry, what is compared by itself; and what follows from the rest, or says where it was made
ELSEWHERE = "id verdict message checks gates readings controls rivals counterpart counterpart_checks resolution by settings".split()
ELSEWHERE += "digest made_from compile_seconds run_seconds cpu_seconds seed_range".split() + RUNS
LEFT_OUT = "theory home command error teeth programs".split()
OPPONENTS = {"controls": "control", "rivals": "rival"}
# a resolution is found to 6% by bisection down to LEAST: two that are further apart than RESOLVED are different. Where a judge's
# intervals come from 8 seeds, their widths differ by 1.5 from one draw of seeds to another, so that only BLUNTER tells a change
RESOLVED, BLUNTER, LEAST = 1.1, 2.0, 1e-14


@dataclasses.dataclass(frozen=True)
class NumberDiff:
    """A number that is not the same in both results.

    Args:
        kind: check, gate, reading, counterpart (a check of the form that a refuted claim's judge upholds), control, rival, cell (of
            ``--by``) or resolution.
        name: what is compared or read; of a control, rival or cell after its own name and a colon.
        value: the numbers.
        interval: their intervals.
        bound: what they are compared with.
        passed: whether they pass; None if undecided, or a reading.
        moved: whether the number moved by more than its intervals.
        other_runs: whether it has no interval, and the runs have other settings or seeds, which make it another one.
        only_in: ``a`` or ``b`` if the other result lacks it.
    """

    kind: str
    name: str
    value: Pair
    interval: Pair
    bound: Pair
    passed: Pair
    moved: bool
    other_runs: bool = False
    only_in: str | None = None

    @property
    def within(self) -> bool:
        """Whether nothing but the number changed, within its intervals; a resolution has none."""
        return (
            self.only_in is None
            and self.kind != "resolution"
            and not (self.moved or self.other_runs or self.bound_changed or self.passed[0] is not self.passed[1])
        )

    @property
    def bound_changed(self) -> bool:
        """Whether its bound is another one, by more than rounding."""
        return self.only_in is None and not _same_ends(*self.bound)


@dataclasses.dataclass(frozen=True)
class ClaimDiff:
    """What differs in one claim; a mapping holds only what does.

    Args:
        id: the claim.
        verdict: its verdicts.
        expected: its expected verdict, in ``b``.
        message: what ``b`` says about its verdict.
        numbers: checks, gates and readings, also of the counterpart, of controls and rivals and of cells, and resolutions.
        opponents: whether a control or rival is rejected; None where it is not there.
        cells: verdicts of the cells of ``--by``, by their coordinates; None where one is not there.
        settings: fields of the setting.
        runs: scale, seeds, and numbers of runs.
        facts: all else: its statement, its expected verdict, the origin of its bounds, what is said of changes after runs were seen
            (``looks``), the message of a verdict that is the same, …
        digests: hashes of its judge (with controls and rivals), of the code behind judge and figure, of its programs, and of which
            runs were made, where settings and seeds do not tell it.
        seconds: wall and processor time of its programs, where one is 1.5 times the other.
    """

    id: str
    verdict: Pair
    expected: str
    message: str | None = None
    numbers: tuple[NumberDiff, ...] = ()
    opponents: Pairs = dataclasses.field(default_factory=dict)
    cells: Pairs = dataclasses.field(default_factory=dict)
    settings: Pairs = dataclasses.field(default_factory=dict)
    runs: Pairs = dataclasses.field(default_factory=dict)
    facts: Pairs = dataclasses.field(default_factory=dict)
    digests: Pairs = dataclasses.field(default_factory=dict)
    seconds: Pairs = dataclasses.field(default_factory=dict)

    @property
    def verdict_differs(self) -> bool:
        """Whether its verdict differs, or that of one of its cells."""
        return self.verdict[0] != self.verdict[1] or any(None not in pair for pair in self.cells.values())

    @property
    def turned(self) -> list[str]:
        """The controls and rivals in both that only one result rejects."""
        return [name for name, pair in self.opponents.items() if None not in pair]

    @property
    def moved(self) -> list[NumberDiff]:
        """The numbers that moved, and the checks with another outcome."""
        return [n for n in self.numbers if n.only_in is None and (n.moved or n.passed[0] is not n.passed[1])]

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        parts = (self.numbers, self.opponents, self.cells, self.settings, self.runs, self.facts, self.digests, self.seconds)
        return not (self.verdict_differs or any(parts))


@dataclasses.dataclass(frozen=True)
class Diff:
    """What :func:`diff` returns; printed as ``jaxdyn diff`` prints it.

    Args:
        a: path, date, commit and number of claims of the first result.
        b: the same of the second.
        compared: number of claims in both.
        claims: the claims in both in which something differs.
        only_a: ids of the claims that only the first has.
        only_b: ids of the claims that only the second has.
        environment: versions, commit and machine that differ.
        seconds: wall and processor time of the whole calls, where one is 1.5 times the other.
    """

    a: Mapping[str, Any]
    b: Mapping[str, Any]
    compared: int
    claims: tuple[ClaimDiff, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    environment: Pairs
    seconds: Pairs

    @property
    def differs(self) -> bool:
        """Whether a verdict differs, or a number moved, or one or an opponent has another outcome (exit code 1)."""
        return any(claim.verdict_differs or claim.moved or claim.turned for claim in self.claims)

    @property
    def empty(self) -> bool:
        """Whether nothing differs, apart from the date and the duration of the calls."""
        return not (self.claims or self.only_a or self.only_b or self.environment)

    def to_json(self) -> dict[str, Any]:
        """The object of ``jaxdyn diff --json``: JSON types only, pairs as lists of two."""
        return {"differs": self.differs, **finite(dataclasses.asdict(self))}

    def __str__(self) -> str:
        return "\n".join(diff_text.lines(self))


def diff(a: Any, b: Any) -> Diff:
    """Compare two results of a verification: verdicts, numbers, bounds, opponents, settings, seeds, code, versions and times.

    ``jd.diff("report-before", "report")``, ``jd.diff("report", jd.verify("theory.claim"))``

    Args:
        a: the ``--out`` of a verification, its ``result.json``, or what ``jd.verify`` or ``jd.verify_many`` returned.
        b: the same of the other one.

    Returns:
        ``.differs``, ``.claims``, ``.only_a``, ``.only_b``, ``.environment``, ``.seconds``, ``.to_json()``.

    Raises:
        UsageError: one of them is no result, is damaged or of a newer version, or they have no claim in common.
    """
    whole_a, whole_b = entries_of(a, "a"), entries_of(b, "b")
    one, other = _by_id(whole_a), _by_id(whole_b)
    both = [name for name in one if name in other]
    if not both:
        raise UsageError(f"{_name(a)} and {_name(b)} have no claim in common: there is nothing to compare")
    claims = (_claim(one[name], other[name]) for name in both)
    return Diff(
        a=_origin(a, whole_a),
        b=_origin(b, whole_b),
        compared=len(both),
        claims=tuple(claim for claim in claims if not claim.empty),
        only_a=tuple(name for name in one if name not in other),
        only_b=tuple(name for name in other if name not in one),
        environment=_changed(_mapping(whole_a, "environment"), _mapping(whole_b, "environment"), ENVIRONMENT),
        seconds=_slower(_call_seconds(whole_a), _call_seconds(whole_b)),
    )


def entries_of(result: Any, name: str) -> dict[str, Any]:
    """The JSON object of a verification: stored, or of what ``jd.verify`` or ``jd.verify_many`` returned.

    Args:
        result: a path, one result, or a list of them.
        name: the argument's name in messages.

    Raises:
        UsageError: it is something else, or cannot be read.
    """
    if isinstance(result, str | Path):
        return read_whole(from_home(result))
    results = list(result) if isinstance(result, list | tuple) else [result]
    from jaxdyn.engine.verification.payload import payload
    from jaxdyn.engine.verification.result import Result

    if not results or not all(isinstance(one, Result) for one in results):
        allowed = "the --out of `jaxdyn verify`, or what jd.verify or jd.verify_many returned"
        raise UsageError(f"{name}={one_line(result)} is not allowed: {name} is {allowed}")
    return payload(results, math.nan)


def _name(result: Any) -> str:
    return str(result) if isinstance(result, str | Path) else "results of this session"


def _origin(result: Any, whole: Mapping[str, Any]) -> dict[str, Any]:
    environment = _mapping(whole, "environment")
    return {
        "path": _name(result),
        "date": environment.get("date"),
        "commit": environment.get("commit"),
        "claims": len(whole["claims"]),
        "unfinished": whole.get("unfinished"),
    }


def _by_id(whole: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The entries by their ids.

    Raises:
        UsageError: two have the same.
    """
    counts = Counter(entry["id"] for entry in whole["claims"])
    if twice := [name for name, n in counts.items() if n > 1]:
        raise UsageError(f"results of `jaxdyn verify` name {shown(twice[0])} twice: they are damaged")
    return {entry["id"]: entry for entry in whole["claims"]}


def _mapping(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of an entry that is an object; an empty one if it is missing."""
    part = entry.get(name)
    return part if isinstance(part, Mapping) else {}


def _changed(one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str] | None = None) -> dict[str, Pair]:
    """The pairs of values that differ; of ``names``, those that both know, else all."""
    if names is None:
        return {n: (one.get(n), other.get(n)) for n in {**one, **other} if one.get(n) != other.get(n) or (n in one) != (n in other)}
    return {n: (one[n], other[n]) for n in names if n in one and n in other and one[n] != other[n]}


def _claim(one: Mapping[str, Any], other: Mapping[str, Any]) -> ClaimDiff:
    a, b = ({**entry, "seeds": entry.get("seed_range", entry.get("seeds"))} for entry in (one, other))
    settings, runs = _changed(_mapping(one, "settings"), _mapping(other, "settings")), _changed(a, b, RUNS)
    planned_alike = not (settings or {"scale", "seeds"} & runs.keys())
    before, after = ({at: cell.get("verdict") for at, cell in cells.items()} for cells in _cells(one, other))
    return ClaimDiff(
        id=one["id"],
        verdict=(one.get("verdict"), other.get("verdict")),
        expected=str(other.get("expected")),
        message=other.get("message") if one.get("verdict") != other.get("verdict") else None,
        numbers=(*_numbers(_all_numbers(one, other), _all_numbers(other, one), planned_alike), *_resolutions(one, other)),
        opponents=_changed(_rejected(one), _rejected(other)),
        cells=_changed(before, after),
        settings=settings,
        runs=runs,
        facts=_facts(one, other, planned_alike),
        digests=_digests(one, other, planned_alike),
        seconds=_slower(_seconds(one), _seconds(other)),
    )


def _opponents(entry: Mapping[str, Any]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The kind and the outcome of each control and rival, by its name, which no two share."""
    each = [(kind, one) for part, kind in OPPONENTS.items() for one in entry.get(part) or ()]
    return {str(one["name"]): (kind, one) for kind, one in each if isinstance(one, Mapping) and "name" in one}


def _rejected(entry: Mapping[str, Any]) -> dict[str, bool]:
    """Whether the controls and rivals are rejected, by their names."""
    return {name: bool(outcome.get("rejected")) for name, (_, outcome) in _opponents(entry).items()}


def _cells(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[dict[str, Mapping[str, Any]]]:
    """The cells of ``--by`` in both, by their coordinates as text: ``lr=0.1, width=8``; none if they are cells of other fields."""
    parts = [_mapping(entry, "by") for entry in (one, other)]
    if parts[0].get("fields") != parts[1].get("fields"):
        return [{}, {}]
    each = [[cell for cell in part.get("cells") or () if isinstance(cell, Mapping)] for part in parts]
    return [{", ".join(f"{k}={v}" for k, v in _mapping(cell, "at").items()): cell for cell in cells} for cells in each]


def _facts(one: Mapping[str, Any], other: Mapping[str, Any], planned_alike: bool) -> dict[str, Pair]:
    """What else differs of what both entries say, and what they say of the same verdict or opponent."""
    names = [name for name in one if name not in ELSEWHERE and name not in LEFT_OUT]
    facts = _changed(one, other, [name for name in names if planned_alike or name != "tested"])  # it names settings and seeds
    pairs = {"counterpart": (one.get("counterpart"), other.get("counterpart"))}
    pairs["by"] = _mapping(one, "by").get("fields"), _mapping(other, "by").get("fields")
    if one.get("verdict") == other.get("verdict"):
        pairs["message"] = one.get("message"), other.get("message")
    theirs = _opponents(other)
    for name, (kind, outcome) in _opponents(one).items():
        if name in theirs:
            pairs[f"{kind} {name}, reason"] = outcome.get("reason"), theirs[name][1].get("reason")
    return facts | {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _digests(one: Mapping[str, Any], other: Mapping[str, Any], planned_alike: bool) -> dict[str, Pair]:
    """The hashes that differ, as far as they are known and can be compared."""
    known = {"judge": (one.get("digest"), other.get("digest"))}
    made = _mapping(one, "made_from"), _mapping(other, "made_from")
    names = ["runs"] if planned_alike else []
    if all(made) and all(made[0].get(name) == made[1].get(name) for name in MADE_WITH):
        names += ["code", "plot", "programs"]
    known |= {name: (made[0].get(name), made[1].get(name)) for name in names}
    return {name: pair for name, pair in known.items() if None not in pair and pair[0] != pair[1]}


# numbers


def _all_numbers(entry: Mapping[str, Any], other: Mapping[str, Any]) -> list[Number]:
    """All numbers of an entry; those of its counterpart, controls, rivals and cells as far as the other entry has these, too."""
    theirs, (cells, others) = _opponents(other), _cells(entry, other)
    parts = [("counterpart", "", {"checks": entry["counterpart_checks"]})] if _both("counterpart_checks", entry, other) else []
    for name, (kind, outcome) in _opponents(entry).items():
        if name in theirs:
            parts += [(kind, f"{name}: ", {n: outcome[n] for n in ("checks", "readings") if _both(n, outcome, theirs[name][1])})]
    for at, cell in cells.items():
        if at in others and _both("checks", cell, others[at]):
            parts.append(("cell", f"{at}: ", {"checks": cell["checks"]}))
    found = numbers_of(entry)
    for kind, before, part in parts:
        found += [n._replace(kind=kind, name=before + n.name) for n in numbers_of({"id": entry["id"], **part})]
    return found


def _both(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.get(name) is not None and other.get(name) is not None


def _resolutions(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[NumberDiff]:
    """The resolutions that differ by more than what bisection leaves open; None is one that is not finite, or not there."""
    before, after = ({} if (part := entry.get("resolution")) is None else _flat(entry["id"], part) for entry in (one, other))
    found = []
    for name in {**before, **after} if _both("resolution", one, other) else ():
        value = before.get(name), after.get(name)
        sizes = [math.inf if v is None else max(v, LEAST) for v in value]
        factor = 1.0 if sizes[0] == sizes[1] else max(sizes) / min(sizes)
        if factor > RESOLVED:
            found.append(NumberDiff("resolution", name, value, (None, None), (None, None), (None, None), moved=factor > BLUNTER))
    return found


def _flat(claim: str, resolution: Any) -> dict[str, float | None]:
    """The thresholds of a resolution by ``scale …`` and ``mix …``.

    Raises:
        UsageError: they are no numbers.
    """
    parts = {kind: _mapping(resolution, kind) for kind in ("scale", "mix")} if isinstance(resolution, Mapping) else {}
    flat = {f"{kind} {name}": value for kind, part in parts.items() for name, value in part.items()}
    if not all(value is None or _is_number(value) for value in flat.values()):
        raise UsageError(f"the entry of {shown(claim)} is damaged: its resolution cannot be read")
    return flat


def _numbers(one: Sequence[Number], other: Sequence[Number], planned_alike: bool) -> list[NumberDiff]:
    """The numbers that differ, in the order of the second result, then those that only the first has."""
    before, after = _keyed(one), _keyed(other)
    pairs = [(before.get(key), after[key]) for key in after] + [(n, None) for key, n in before.items() if key not in after]
    return [found for pair in pairs if (found := _number(*pair, planned_alike=planned_alike)) is not None]


def _keyed(numbers: Sequence[Number]) -> dict[tuple[str, str, int], Number]:
    """Numbers by kind, name, and place among those of the same name."""
    count: Counter[tuple[str, str]] = Counter()
    keyed = {}
    for number in numbers:
        keyed[number.kind, number.name, count[number.kind, number.name]] = number
        count[number.kind, number.name] += 1
    return keyed


def _number(a: Number | None, b: Number | None, *, planned_alike: bool) -> NumberDiff | None:
    """The difference of one number; None if there is none."""
    some = b or a
    assert some is not None
    value, interval, bound, passed = ((a and getattr(a, n), b and getattr(b, n)) for n in PAIRED)
    found = NumberDiff(some.kind, some.name, value, interval, bound, passed, moved=False)
    if a is None or b is None:
        return dataclasses.replace(found, only_in="b" if a is None else "a")
    same = _same(a.value, b.value, [*(a.bound or ()), *(b.bound or ())])
    other_runs = not (planned_alike or same or a.value is None or b.value is None or a.interval or b.interval)
    found = dataclasses.replace(found, moved=not (same or other_runs) and _disjoint(a, b), other_runs=other_runs)
    return None if same and found.within and _same_ends(a.interval, b.interval) else found


def _same(a: float | None, b: float | None, ends: Sequence[float | None] = ()) -> bool:
    """Whether two numbers differ by rounding at most, on the scale of themselves and of their bounds."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= ROUNDING * max(abs(x) for x in (a, b, *ends) if x is not None)


def _same_ends(a: Ends | None, b: Ends | None) -> bool:
    if a is None or b is None:
        return a is b
    return all(map(_same, a, b))


def _disjoint(a: Number, b: Number) -> bool:
    """Whether two intervals have no number in common; an end that is not finite is infinite."""
    if a.value is None or b.value is None:
        return True
    (low, high), (least, most) = _interval(a, a.value), _interval(b, b.value)
    return high < least or most < low


def _interval(number: Number, value: float) -> tuple[float, float]:
    low, high = number.interval or (value, value)
    return -math.inf if low is None else low, math.inf if high is None else high


# times


def _seconds(entry: Mapping[str, Any]) -> dict[str, float]:
    """Wall and processor time of a claim's programs."""
    return _known(_total([entry.get("compile_seconds"), entry.get("run_seconds")]), entry.get("cpu_seconds"))


def _call_seconds(whole: Mapping[str, Any]) -> dict[str, float]:
    """Wall and processor time of a whole call; none if all its runs were stored, since reading them tells nothing."""
    costs = [cost for cost in whole.get("costs") or () if isinstance(cost, Mapping)]
    if not any(cost.get("runs") for cost in costs):
        return {}
    return _known(whole.get("seconds"), _total([cost.get("cpu_seconds") for cost in costs]))


def _total(seconds: Sequence[Any]) -> float | None:
    return sum(map(float, seconds)) if all(map(_is_number, seconds)) else None


def _known(wall: Any, cpu: Any) -> dict[str, float]:
    return {name: float(value) for name, value in (("wall", wall), ("cpu", cpu)) if _is_number(value)}


def _slower(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, Pair]:
    """The times of which one is well above the other; zero is the time of stored runs."""
    pairs = {name: (one[name], other[name]) for name in one if name in other}
    return {name: p for name, p in pairs.items() if min(p) > 0 and max(p) >= SHORTEST and max(p) > SLOWER * min(p)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
