"""Neighbours of a claim's settings: does it come out the same way where a number that it fixes is another?

Every number that a claim fixes is made half, twice and ten times as large, one at a time, and every axis of numbers is extended
beyond both ends; so are values that the claim itself asks at paper scale, those at which other claims run the same trial, the least
that a count may be, and the middle between a number and the end of its range, where that is less than twice the number. A neighbour
is left out where the claim itself says that it ends: outside the range of the field, outside its assumptions, at and beyond values
of a control that changes this field alone; and of a field in ``holds`` the two ends of its stated domain are asked instead. So are
switches, numbers that are 0 or 1 in the claim and the other one in a control, and numbers that are there for controls alone
(``jd.field(1.0, role="breach")``).

So is a number that stands in the claim's title, statement or assumptions: what a statement fixes it says of nothing else. Both ends
of an axis have to stand there, and halves up to 2 as "= 1" or by the field's name ("two classes"), since they stand in many texts.

A field that chooses among names, or between true and false, is asked at its other names too, unless the claim tells which it means:
its title, statement or assumptions have the name (of a switch: the field's name), or a control is about the other one.

Training that is cut short is no counterexample to a statement on trained networks. So times of network claims are left to
:mod:`jaxdyn.attacks.more_time`, and steps become more in proportion where a rate is lowered.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from jaxdyn.attacks import more_time
from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable, not_asked
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.runs import Judged, fresh, judge, make, opposite, seconds_of, short_of, task_of
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.claims.ranges import counts_steps, numeric_fields, role_of, roles_of
from jaxdyn.engine.runs.blocks import distinct_runs
from jaxdyn.engine.runs.costs import program_times
from jaxdyn.engine.verification.task import Task
from jaxdyn.errors import UsageError
from jaxdyn.wording import plural

__all__ = ["NEIGHBOURS", "Candidate", "Neighbour", "affordable", "neighbours", "mentions"]

FACTORS = (0.5, 2.0, 10.0)  # of a number that is fixed
STEM = 4  # letters of a longer name by which a text is said to have it
MEANING = {  # what a text may write for a name
    **{"sgd": ("gradient descent",), "gd": ("gradient descent",), "sign": ("signed",), "random": ("gaussian", "random")},
    **{"square": ("x^2", "quadratic"), "cube": ("x^3", "cubic"), "id": ("linear", "identity"), "linear": ("linear", "identity")},
    **{"mse": ("squared error", "least squares"), "nll": ("cross-entropy", "likelihood"), "cross": ("cross-entropy",)},
}
WORDS = dict(zip("no one two three four five six seven eight nine ten eleven twelve".split(), range(13), strict=True))
NUMERAL = re.compile(r"(?<![\w.,^_])-?(?:\d{1,3}(?:,\d{3})+|\d*\.?\d+)(?![\w]|\.\d)")
COMMON = 2.0  # numbers up to this stand in many texts
BEYOND = (0.5, 2.0)  # of the lowest and of the highest value of an axis


@dataclasses.dataclass(frozen=True)
class Neighbour:
    """Another setting.

    Args:
        field: what is changed.
        value: its new value.
        overrides: of the claim's grid.
        longer: how many times as long its runs last, at most.
        ends: of an extended axis, its new values.
    """

    field: str
    value: float | str
    overrides: Mapping[str, Any]
    longer: float = 1.0
    ends: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The neighbour in words."""
        if self.ends:
            return f"{self.field} also at {' and '.join(f'{end:g}' for end in self.ends)}"
        rest = [f"{name} = {value:g}" for name, value in self.overrides.items() if name != self.field]
        value = self.value if isinstance(self.value, str) else f"{self.value:g}"
        return f"{self.field} = {value}" + (f" (with {', '.join(rest)})" if rest else "")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A neighbour with its runs, and what they cost: seconds of compilation by program, and seconds of all runs together."""

    neighbour: Neighbour
    task: Task
    compiling: Mapping[Hashable, float]
    running: float

    @classmethod
    def of(cls, neighbour: Neighbour, task: Task) -> Candidate:
        """The candidate of a neighbour."""
        times = {key: program_times(program) for key, program in task.main.programs.items()}
        runs = distinct_runs([task.main])
        seconds = sum(runs[key] * each for key, (_, each) in times.items())
        return cls(neighbour, task, {key: compiling for key, (compiling, _) in times.items()}, neighbour.longer * seconds)

    @property
    def seconds(self) -> float:
        """Expected seconds if nothing is compiled yet."""
        return sum(self.compiling.values()) + self.running


def ask(case: Case) -> Answer:
    """Whether a neighbour comes out the other way."""
    if case.measured:
        return not_applicable("a measured claim asserts nothing of other settings")
    left = [each for one in neighbours(case) for each in _allowed(case, one)]
    if not left:
        return not_applicable("no number that it fixes or sweeps may have another value")
    room = (case.time.left - more_time.seconds(case)) / 2  # half of what is left is for fresh seeds
    asked, findings = list[dict[str, Any]](), list[Finding]()
    while left and (batch := affordable([Candidate.of(*each) for each in left], room)):
        before = case.time.spent
        judged = list(_judged(case, batch))
        asked += [{"field": one.field, "setting": one.text, "verdict": word.verdict} for one, word in judged]
        against = [(one, word) for one, word in judged if opposite(case.claim, word)]
        findings += [Finding(one.field, f"{word.verdict} at {one.text}: {word.why}") for one, word in _again(case, against)]
        room -= case.time.spent - before
        done = {id(candidate.neighbour) for candidate in batch}
        left = [each for each in left if id(each[0]) not in done]
    left_out = [one.text for one, _ in left]
    if not asked:
        return not_asked(short_of(case, min(Candidate.of(*each).seconds for each in left)), left_out=left_out)
    return answered(_detail(case, asked, left_out), findings, asked=asked, left_out=left_out)


def affordable(candidates: Sequence[Candidate], room: float) -> list[Candidate]:
    """Candidates of the same programs that fit into some seconds together; those that cost least, each of them."""
    batches = list[tuple[float, list[Candidate]]]()
    for programs in {frozenset(one.compiling) for one in candidates}:
        alike = sorted((one for one in candidates if one.compiling.keys() == programs), key=lambda one: one.running)
        total, chosen = sum(alike[0].compiling.values()), list[Candidate]()
        for one in alike:
            if total + one.running <= room:
                chosen.append(one)
                total += one.running
        if chosen:
            batches.append((total / len(chosen), chosen))
    return min(batches, key=lambda batch: batch[0])[1] if batches else []


def _detail(case: Case, asked: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> str:
    verdicts = [one["verdict"] for one in asked]
    alike, undecided = verdicts.count(case.claim.expected), verdicts.count("inconclusive")
    text = f"{alike} of {plural(len(asked), 'neighbour')} {'is' if alike == 1 else 'are'} {case.claim.expected} as well"
    if undecided:
        text += f", {undecided} {'is' if undecided == 1 else 'are'} inconclusive"
    return text + (f"; {plural(len(left_out), 'neighbour')} not asked" if left_out else "")


def _task(case: Case, one: Neighbour, seeds: Any = None) -> Task | None:
    """The runs of a neighbour; None if its setting is not allowed, or lacks something on this machine."""
    try:
        task = task_of(case, one.overrides, seeds=seeds)
        return task if task.missing is None and task.main.programs else None
    except UsageError:
        return None


def _allowed(case: Case, one: Neighbour) -> list[tuple[Neighbour, Task]]:
    """A neighbour with its runs, if it is allowed; of an axis, with the ends that are."""
    if (task := _task(case, one)) is not None:
        return [(one, task)]
    parts = [_alone(one, end) for end in one.ends] if len(one.ends) > 1 else []
    return [(part, task) for part in parts if (task := _task(case, part)) is not None]


def _alone(one: Neighbour, end: float) -> Neighbour:
    """An axis that is extended at one end alone."""
    values = [v for v in one.overrides[one.field] if v == end or v not in one.ends]
    return dataclasses.replace(one, value=end, overrides={one.field: values}, ends=(end,))


def _judged(case: Case, batch: Sequence[Candidate]) -> Iterator[tuple[Neighbour, Judged]]:
    """What the judge says of neighbours; of an axis that is extended at both ends and comes out otherwise, of each end."""
    expected = sum(batch[0].compiling.values()) + sum(candidate.running for candidate in batch)
    made = make(case, [candidate.task for candidate in batch], expected)
    for one, data in zip((candidate.neighbour for candidate in batch), made, strict=True):
        judged = judge(case.claim, data)
        if len(one.ends) < 2 or data is None or not opposite(case.claim, judged):
            yield one, judged
            continue
        for alone in (_alone(one, end) for end in one.ends):
            yield alone, judge(case.claim, data.sel({one.field: alone.overrides[one.field]}))


def _again(case: Case, found: Sequence[tuple[Neighbour, Judged]]) -> list[tuple[Neighbour, Judged]]:
    """The neighbours that come out against the claim on seeds that nobody has used, too.

    A check of every run, or one near its bound, may fail by chance on some seeds.
    """
    if not found or len(case.result.task.main.seeds) == 1:
        return list(found)
    tasks = [task for one, _ in found if (task := _task(case, one, fresh(case))) is not None]
    again = [judge(case.claim, data) for data in make(case, tasks, seconds_of(*tasks))]
    return [(one, word) for (one, _), word in zip(found, again, strict=True) if opposite(case.claim, word)]


# which settings


def neighbours(case: Case) -> list[Neighbour]:
    """All neighbours of a claim's settings, allowed or not."""
    claim, grid = case.claim, case.claim.quick
    found = [Neighbour(field, end, {field: end}) for field, ends in claim.holds.items() for end in ends]
    trained = claim.evidence == "network"
    elsewhere = _elsewhere(case)
    for field in numeric_fields(grid.setting):
        own = _values(grid, field)
        role = role_of(grid.setting, field)
        if field in claim.holds or role == "breach" or (trained and role == "time"):
            continue
        if stated(claim, field, own):
            continue
        marks = _breaches(case, field)
        if set(own) | set(marks) <= {0, 1} and marks:
            continue  # a switch
        others = [value for other in elsewhere for value in _values(other, field)]
        if len(own) == 1:
            fixed = [*_fixed(grid, field, trained)]
            more = dict.fromkeys([*others, *_towards_ends(grid, field, own[0])])
            new = [*fixed, *(Neighbour(field, v, {field: v}) for v in more if v not in {*own, *(one.value for one in fixed)})]
        else:
            new = [*_extended(field, own, others, trained and _is_rate(grid, field))]
        found += [one for one in (_inside(each, own, marks) for each in new) if one is not None]
    return [*found, *_named(claim)]


def _elsewhere(case: Case) -> list[Grid]:
    """Other grids of the trial: the claim's own at paper scale, and those of other claims of its theory."""
    claim = case.claim
    claims = registry.all_claims(case.result.task.load, {claim.theory}).values()
    others = [one.quick for one in claims if one.trial is claim.trial and one.id != claim.id]
    return [grid for grid in (claim.paper, *others) if grid is not None and grid.setting is claim.quick.setting]


def stated(claim: Claim, field: str, values: Sequence[float]) -> bool:
    """Whether the ends of a field's values stand in a claim's title, statement or assumptions."""
    text = " ".join((claim.title, claim.statement, *map(str, claim.assumes)))
    text = re.sub(r"\\cdot|\\times|[${}]", "", text)
    return all(_stands(text, field, value) for value in {min(values), max(values)})


def _stands(text: str, field: str, value: float) -> bool:
    """Whether a text gives a number, as a numeral or a word; one of the common ones as that of the field."""
    found = [(m, float(m[0].replace(",", ""))) for m in NUMERAL.finditer(text)]
    found += [(m, float(WORDS[m[0].lower()])) for m in re.finditer(rf"\b({'|'.join(WORDS)})\b", text, re.I)]
    percent = [(m, number / 100) for m, number in found if re.match(r"\\?%", text[m.end() :])]
    alike = [m for m, number in (*found, *percent) if math.isclose(number, value, rel_tol=1e-9)]
    named = rf"\s*{re.escape(field[:STEM])}" if len(field) >= STEM else r"(?!)"
    if abs(value) > COMMON or not float(2 * value).is_integer():
        return bool(alike)
    return any(text[: m.start()].rstrip().endswith("=") or re.match(named, text[m.end() :]) for m in alike)


def _named(claim: Claim) -> Iterator[Neighbour]:
    """The other names of fields that choose among names, where the claim does not tell which one it means."""
    grid = claim.quick
    text = " ".join((claim.title, claim.statement, *map(str, claim.assumes))).lower()
    for field, options in _options(grid.setting).items():
        own = {_word(value) for value in _all(grid, field)}
        if any(mentions(text, word) for word in ({field} if set(options) == {"true", "false"} else own)):
            continue
        breaches = [c.breach[field] for c in claim.controls.values() if isinstance(c.breach, Mapping) and field in c.breach]
        ends = {_word(v) for value in breaches for v in (value if isinstance(value, list | tuple) else [value])}
        yield from (Neighbour(field, v, {field: v}) for v in options if v not in own and v not in ends)


def mentions(text: str, name: str) -> bool:
    """Whether a text has words that begin like those of a name (short ones: the words themselves), or what means the same."""
    parts = re.findall(r"[a-z]+", name.lower())
    return bool(parts) and all(_has_word(text, part) or any(one in text for one in MEANING.get(part, ())) for part in parts)


def _has_word(text: str, part: str) -> bool:
    end = "" if len(part) > STEM else r"(?![a-z])"  # exp is not in "experiment"
    return re.search(rf"(?<![a-z]){part[:STEM]}{end}", text) is not None


def _word(value: Any) -> str:
    """A name, or a truth value as on the command line."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _options(setting: Any) -> dict[str, tuple[str, ...]]:
    """The names among which fields of a setting choose."""
    literals = {name: get_args(hint) for name, hint in setting.hints.items() if get_origin(hint) is Literal}
    switches = {name: ("true", "false") for name, hint in setting.hints.items() if hint is bool}
    return {**setting.code_names, **{name: tuple(map(_word, options)) for name, options in literals.items()}, **switches}


def _values(grid: Grid, field: str) -> tuple[float, ...]:
    return grid.axes[field] if field in grid.axes else (getattr(grid.base, field),)


def _is_rate(grid: Grid, field: str) -> bool:
    return role_of(grid.setting, field) == "rate"


def _like(value: float, own: float) -> float:
    """A new value for a number: a whole one where the old one is whole and above 1, and of the old one's type."""
    if isinstance(own, int):
        return max(1, round(value))
    return float(round(value)) if own.is_integer() and abs(own) > 1 else value


def _fixed(grid: Grid, field: str, trained: bool) -> Iterator[Neighbour]:
    """Neighbours of a number that has one value."""
    (own,) = _values(grid, field)
    for factor in FACTORS if own else ():
        value = _like(factor * own, own)
        if value == own:
            continue
        more: Mapping[str, Any] | None = {}
        if factor < 1 and trained and _is_rate(grid, field):
            more = _lengthened(grid, 1 / factor)
        if more is not None:
            yield Neighbour(field, value, {field: value, **more}, _longer(grid, field, factor))


def _towards_ends(grid: Grid, field: str, own: float) -> Iterator[float]:
    """Of a count the least that is allowed; of a number with an upper end that twice the number passes, half way there."""
    ends = grid.setting.ranges[field].as_dict() if field in grid.setting.ranges else {}
    upper = ends.get("below", ends.get("at_most"))
    if isinstance(own, int) and not isinstance(own, bool) and own > 1:
        yield max(1, math.ceil(ends.get("at_least", ends.get("above", 0) + 1)))
    if upper is not None and own and FACTORS[1] * own >= upper > own:
        yield _like((own + upper) / 2, own)


def _longer(grid: Grid, field: str, factor: float) -> float:
    """How many times as long runs last, at most, as far as the program's expected cost does not tell it."""
    own = role_of(grid.setting, field)
    if own == "rate":
        return max(1.0, 1 / factor)
    return max(1.0, factor) if own == "time" or field in grid.setting.static_fields else 1.0


def _lengthened(grid: Grid, factor: float) -> dict[str, Any] | None:
    """The numbers of steps, made larger; none where times are spans, and None where there is nothing to make larger."""
    times = [name for name, found in roles_of(grid.setting).items() if found == "time"]
    if not times:
        return None
    return {name: _times(grid, name, factor) for name in times if counts_steps(name)}


def _times(grid: Grid, name: str, factor: float) -> Any:
    values = [_like(factor * value, value) for value in _values(grid, name)]
    return values if name in grid.axes else values[0]


def _extended(field: str, own: Sequence[float], others: Sequence[float], rate: bool) -> Iterator[Neighbour]:
    """An axis beyond both ends, or to those of other grids; that of a rate, and one that begins at 0, beyond its upper one."""
    low, *_, high = ordered = sorted(own)
    if low >= 0:
        below, above = _like(BEYOND[0] * low, low), _like(BEYOND[1] * high, high)
    else:
        below, above = low - (ordered[1] - low), high + (high - ordered[-2])
    below, above = min((below, *others)), max((above, *others))
    ends = tuple(end for end in ((above,) if rate or low == 0 else (below, above)) if end not in own)
    if ends:
        yield Neighbour(field, ends[0], {field: [*own, *ends]}, 1.0, ends)


def _breaches(case: Case, field: str) -> list[float]:
    """Values of a number in controls that change it alone: there the claim is said to end."""
    grid, found = case.claim.quick, list[float]()
    for control in case.claim.controls.values():
        if isinstance(control.breach, Mapping):
            changed = {name: _listed(value) for name, value in control.breach.items()}
            changed = {name: values for name, values in changed.items() if not set(values) <= {*map(str, _all(grid, name))}}
            if set(changed) == {field}:
                found += [float(v) for v in changed[field]]
    return found


def _all(grid: Grid, field: str) -> tuple[Any, ...]:
    return grid.axes[field] if field in grid.axes else (getattr(grid.base, field),)


def _listed(value: Any) -> list[str]:
    return [str(v) for v in (value if isinstance(value, list | range | tuple) else [value])]


def _inside(one: Neighbour, own: Sequence[float], marks: Sequence[float]) -> Neighbour | None:
    """A neighbour without the values at and beyond which a control says that the claim ends; None if none is left."""
    high = min((m for m in marks if m > max(own)), default=float("inf"))
    low = max((m for m in marks if m < min(own)), default=float("-inf"))
    if not one.ends:
        return one if isinstance(one.value, str) or low < one.value < high else None
    ends = tuple(end for end in one.ends if low < end < high)
    values = [v for v in one.overrides[one.field] if v in ends or v not in one.ends]
    return dataclasses.replace(one, value=ends[0], overrides={one.field: values}, ends=ends) if ends else None


NEIGHBOURS = Attack(
    "neighbours", "Does the claim come out the other way where a number that it fixes is another?", ask, costly=True
)
