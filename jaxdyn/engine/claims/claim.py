"""Claims: a trial, grids of settings, a judge, negative controls, rivals, and the expected verdict.

The engine runs ``trial(setting, key) -> Observables`` over a grid (:mod:`jaxdyn.engine.runs.sweep`) and gives the labelled Dataset
to the judge (:mod:`jaxdyn.engine.judging.verdict`). In that Dataset a predicted array ``z`` is ``predicted_z``, its measurement
``measured_z``; recorded arrays keep their names; ``status`` says how each run ended. Dimensions: the grid's axes, ``seed``, then
the arrays' own axes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from jaxdyn.engine.claims.contract import (
    EVIDENCE,
    MECHANISM,
    REFUTED,
    Assumption,
    Bounds,
    Evidence,
    contradiction,
    counted_as,
    is_provenance,
)
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.claims.grid import Grid, Points
from jaxdyn.engine.claims.observables import Observables
from jaxdyn.engine.storage.seeds import Seeds
from jaxdyn.errors import UsageError, flag, shown
from jaxdyn.wording import FORMULAS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Breach", "Claim", "Control", "Judge", "Plot", "Rival", "Shared"]

Judge: TypeAlias = "Callable[[xr.Dataset], Sequence[Any]]"  # of checks, or of readings and gates
Breach: TypeAlias = "Mapping[str, Any] | Callable[[xr.Dataset], xr.Dataset]"
Rival: TypeAlias = "Callable[[xr.Dataset], xr.Dataset] | Mapping[str, float | Callable[[xr.Dataset], float]] | Off"
Plot: TypeAlias = "Callable[[xr.Dataset, Figure], None]"


TITLE = 70  # most characters of a title
LEAST_SEEDS = 6  # least seeds of a control, if the claim has as many


@dataclasses.dataclass(frozen=True)
class Control:
    """A named breach of an assumption that the judge must reject.

    Args:
        breach: setting fields to override (a run of its own; swept fields share the main program), or a function
            Dataset -> Dataset that distorts the prediction or the data (costs no run).
        diverges: whether the breach makes runs diverge; otherwise diverged runs do not count as rejection.
        every_seed: whether it is run with every seed of the claim; by default with half of them, at least six, which is enough to
            reject what is far off.
        why: why it changes several fields at once, or takes values inside the stated domain, if it does.
        breaks: the words of the claim, or of an assumption, that it violates, where its own name has none of them.
    """

    breach: Breach
    diverges: bool = False
    every_seed: bool = False
    why: str = ""
    breaks: str = ""

    def __post_init__(self) -> None:
        for name, what in (("why", "a sentence"), ("breaks", "words of the claim")):
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"{name}={shown(getattr(self, name))} is not allowed: it is {what}")
        flag("diverges", self.diverges)
        flag("every_seed", self.every_seed)

    def seeds(self, own: Seeds) -> Seeds:
        """The seeds of the control, chosen from the claim's own."""
        return own if self.every_seed else own[: max(LEAST_SEEDS, -(-len(own) // 2))]


def _brief(value: Any) -> str:
    """A value on one line, for a refusal."""
    return shown(value if getattr(value, "ndim", 0) or isinstance(value, int) else repr(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_record(record: Any) -> bool:
    """Whether this can be a recorded value: a number, or (low, value, high)."""
    numbers = record if isinstance(record, tuple) else (record,) * 3
    return len(numbers) == 3 and all(map(_is_number, numbers)) and numbers[0] <= numbers[1] <= numbers[2]


def _maps(value: Any, is_allowed: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value)) and all(map(is_allowed, value.values()))


def _is_range(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_text, value))


def _are_assumptions(value: Any) -> bool:
    return isinstance(value, Assumption) or (isinstance(value, tuple | list) and all(isinstance(a, Assumption) for a in value))


def _is_product(value: Any) -> bool:
    """Whether it is a grid that is a product of axes, which claims are judged over."""
    return isinstance(value, Grid) and not isinstance(value, Points)


def _or_none(is_allowed: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_allowed(value)


UNFILLED = re.compile(r"\{[A-Za-z_][\w.]*:[.,\d]*[bdeEfFgGnosxX%]\}")  # of an f-string that has no f
NAMED = re.compile(r"\{[A-Za-z_][\w.]*\}")  # the same; in a formula it may be LaTeX
EXPECTED = ("upheld", "refuted", "measured")
ALLOWED: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (  # fields of a claim, a test of a value, in words
    (("id", "title", "statement", "source"), _is_text, "a text"),
    (("form", "counterpart", "sibling", "caption", "printed", "tested"), _or_none(_is_text), "a text or None"),
    (("controls", "rivals"), lambda value: isinstance(value, Mapping), "a dict"),
    (("recorded",), _or_none(lambda value: isinstance(value, Mapping)), "a dict or None"),
    (("invariant",), lambda value: isinstance(value, bool), "true or false"),
    (
        ("holds",),
        lambda value: _maps(value, _is_range),
        "a dict of fields and their lowest and highest values, {field: (low, high)}",
    ),
    (("excused",), lambda value: _maps(value, _is_text), "a dict of attacks and sentences, {attack: why}"),
    (("decides",), lambda value: _maps(value, _are_names), "a dict of words, {word: (check, opponent)}"),
    (("quick",), _is_product, "a grid, jd.grid(...)"),
    (("paper",), _or_none(_is_product), "a grid, jd.grid(...), or None"),
    (("trial", "judge"), callable, "a function"),
    (("plot",), _or_none(callable), "a function or None"),
    (("seeds",), _is_count, "a whole number of at least 1"),
    (("paper_seeds", "max_seeds", "recorded_seeds"), _or_none(_is_count), "a whole number of at least 1, or None"),
    (("min_ok",), lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    (("assumes",), _are_assumptions, "jd.above(...) or jd.below(...), or a tuple of them"),
    (("talks",), lambda value: isinstance(value, tuple) and all(map(_is_text, value)), "a tuple of texts, ('talk:row',)"),
    (("expected",), lambda value: _is_text(value) and value in EXPECTED, "upheld, refuted or measured"),
    (("evidence",), lambda value: _is_text(value) and value in EVIDENCE, f"one of {', '.join(EVIDENCE)}"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """Fields that claims on the same runs may share (:class:`~jaxdyn.engine.claims.study.Study`), as in :class:`Claim`."""

    trial: Callable[..., Observables]  # (setting, key), and what its resource loads, if it has one
    quick: Grid
    source: str
    paper: Grid | None = None
    seeds: int = 1
    paper_seeds: int | None = None
    max_seeds: int | None = None
    tested: str | None = None
    form: str | None = None
    min_ok: float = 1.0
    plot: Plot | None = None
    caption: str | None = None
    bounds: Bounds | str | None = None
    assumes: tuple[Assumption, ...] = ()
    rivals: Mapping[str, Rival] = dataclasses.field(default_factory=dict)
    holds: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    invariant: bool = False
    excused: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim(Shared):
    r"""A statement about training dynamics that can fail.

    Args:
        id: ``theory.claim``; the name in code, tests, command line and report.
        title: the claim in at most 70 characters that a colleague understands without the paper.
        statement: one or two sentences; mathematics in LaTeX between dollar signs.
        tested: how it is tested: model, data, optimiser, sizes, times. ``{field}`` stands for a field's values, ``{seeds}`` for the
            number of seeds.
        source: paper and theorem or equation.
        trial: ``(setting, key) -> Observables``: pure, jittable, module-level.
        quick: grid for 2 CPU cores; ``paper``: the publication's own scale (default: as quick).
        seeds, paper_seeds: number of seeds at either scale (1 where nothing is random).
        max_seeds: number of seeds up to which they are doubled while a check is undecided; None: none are added.
        judge: ``Dataset -> list[Check]``, deterministic; of a measured claim ``Dataset -> list[Reading]``, gates aside.
        controls: breaches of an assumption, for which the theory must fail: name -> breach (a dict of fields, a function on the
            Dataset, or a ``Control``).
        rivals: other theories, which must fail on the same data: name -> function Dataset -> Dataset that replaces predictions
            (``predicted_…``) or, where the theory predicts a bound only, the rival's values of checks, ``{check: number}``. A
            claim on a model, a network or a flow needs one with the mechanism switched off, ``jd.off(...)``.
        evidence: the kind of measurement: "model", "network", "flow", "reduced", "algebra" or "numbers"
            (``jaxdyn.engine.claims.contract``).
        assumes: bounds on scalars that the trial returns under ``assumed``; runs outside them are not judged.
        expected: the verdict that counts as success: "upheld", "refuted" (a printed form that is wrong) or "measured" (open).
        form: the form of the prediction that is judged, if the trial returns several.
        counterpart: for ``expected="refuted"``: the form that the same judge must uphold on the same data.
        sibling: the claim whose runs, judge and figure this one shares; set by :meth:`as_printed`.
        min_ok: share of runs that must end ``ok``; with fewer the verdict is ``inconclusive``.
        plot: ``(Dataset, Figure) -> None``: prediction against measurement over runs.
        caption: what the figure shows: its axes, what a band, a bar and a symbol mean.
        bounds: where bounds come from: "paper", "derived: from …", or ``jd.tuned(on="0:8", confirmed_on="4000:4010")``; required
            for a claim to be upheld.
        printed: for ``…_as_printed``: the formula as it stands in print, and where.
        talks: rows of talks that this claim decides, ``("talk:row", …)`` (``jaxdyn.report.talks``).
        recorded: for ``expected="measured"``: every reading on the quick grid, name -> ``(low, value, high)``, or a number if it
            is not estimated; a rerun of that grid that disagrees makes the claim inconclusive. None: nothing was recorded yet.
        recorded_seeds: number of seeds on which they were recorded; None: the claim's own.
        holds: the stated domain: field -> the lowest and the highest value for which the statement is made; it is printed with the
            statement, and the referee asks at its ends.
        invariant: whether the statement says that something is conserved, so that it also holds of a network that does not learn.
        decides: words of the statement that promise much ("largest", "only", "never"), each with the check that decides it and the
            control or rival that violates it and is rejected by that check: ``{"largest": ("check", "opponent")}``.
        excused: what the referee finds and why it is no fault: by the attack's name, or by ``"attack: subject"``, a sentence.
    """

    id: str
    title: str
    statement: str
    judge: Judge
    evidence: Evidence = None  # type: ignore[assignment]  # required; checked below, for a message that lists what is allowed
    controls: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    expected: Literal["upheld", "refuted", "measured"] = "upheld"
    counterpart: str | None = None
    sibling: str | None = None
    printed: str | None = None
    talks: tuple[str, ...] = ()
    recorded: Mapping[str, float | tuple[float, float, float]] | None = None
    recorded_seeds: int | None = None
    decides: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_types()
        if not re.fullmatch(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", self.id):
            raise UsageError(
                f"id={_brief(self.id)} is not allowed: it is theory.claim, of letters, digits, underscores and hyphens"
            )
        if self.expected == "refuted" and self.counterpart is None:
            raise UsageError(f"{self.id}: a claim expected to be refuted names the counterpart form that the same judge upholds")
        if self.expected == "upheld" and not self.controls:
            raise UsageError(f"{self.id}: a claim needs at least one negative control that its judge must reject")
        if not 0 < len(self.title) <= TITLE or self.title != " ".join(self.title.split()) or "$" in self.title:
            raise UsageError(
                f"{self.id}: title={_brief(self.title)} is not allowed: it is one line of 1 to {TITLE} characters without LaTeX"
                f" ({len(self.title)} given)"
            )
        self._check_contract()
        controls = {n: c if isinstance(c, Control) else Control(c) for n, c in self.controls.items()}
        object.__setattr__(self, "controls", controls)

    def _check_types(self) -> None:
        """Refuse fields of the wrong type, so that nothing fails after the runs."""
        of = f"{self.id}: " if isinstance(self.id, str) else ""
        for names, is_allowed, what in ALLOWED:
            for name in names:
                if not is_allowed(value := getattr(self, name)):
                    raise UsageError(f"{of}{name}={_brief(value)} is not allowed: it is {what}")
        for name in ("title", "statement", "source", "caption"):
            bare = "".join(piece for piece in FORMULAS.split(getattr(self, name) or "") if piece[:1] not in ("$", "`"))
            if found := UNFILLED.search(getattr(self, name) or "") or NAMED.search(bare):
                raise UsageError(f"{of}{name} holds {found[0]} as it stands: the text lacks an f in front, or a value")
        for kind in ("controls", "rivals"):
            if odd := [key for key in getattr(self, kind) if not (isinstance(key, str) and key)]:
                raise UsageError(f"{self.id}: {kind} have names; {_brief(odd[0])} is none")

    def _check_contract(self) -> None:
        """Refuse a claim whose rivals, controls, records, bounds or name do not fit its evidence and expected verdict."""
        if self.evidence in MECHANISM and self.expected == "upheld" and not any(isinstance(r, Off) for r in self.rivals.values()):
            raise UsageError(
                f"{self.id}: a claim on a {self.evidence} needs a rival with the mechanism switched off: "
                'rivals={"nothing moves": jd.off(predicted_z="initial_z")}'
            )
        self._check_opponents()
        object.__setattr__(self, "assumes", (self.assumes,) if isinstance(self.assumes, Assumption) else tuple(self.assumes))
        if (pair := contradiction(self.assumes)) is not None:
            raise UsageError(f"{self.id}: assumes {pair}, which is not allowed: no run can meet both")
        if self.recorded is not None and self.expected != "measured":
            raise UsageError(f"{self.id}: recorded= is of claims that are expected to be measured")
        self._check_domain()
        if self.recorded_seeds is not None and self.recorded is None:
            raise UsageError(f"{self.id}: recorded_seeds= says on how many seeds recorded= was made, which is missing")
        for name, record in (self.recorded or {}).items():
            if not _is_record(record):
                raise UsageError(
                    f"{self.id}: recorded={{{_brief(name)}: {_brief(record)}}} is not allowed: it records (low, value, high), in "
                    "this order, or the number alone"
                )
        self._check_bounds()
        if self.expected == "refuted":
            self._check_name()

    def _check_domain(self) -> None:
        """Refuse a stated domain of no field, or without the claim's own values."""
        for name, ends in self.holds.items():
            if name not in self.quick.setting.hints:
                raise UsageError(f"{self.id}: holds={{{name!r}: …}} names no field of {self.quick.setting.__name__}")
            own = self.quick.axes.get(name, (getattr(self.quick.base, name),))
            if outside := [value for value in own if _is_number(value) and not ends[0] <= value <= ends[1]]:
                raise UsageError(f"{self.id}: holds={{{name!r}: {_brief(ends)}}} is not allowed: the claim runs at {outside[0]:g}")

    def _check_opponents(self) -> None:
        """Refuse controls and rivals that are not such, or that share a name or a function."""
        if twins := set(self.rivals) & set(self.controls):
            raise UsageError(f"{self.id}: {twins.pop()!r} names a control and a rival; their names must differ")
        rivals = {name: rival.rival if isinstance(rival, Off) else rival for name, rival in self.rivals.items()}
        for name, rival in rivals.items():
            if not callable(rival) and not (isinstance(rival, Mapping) and rival):
                raise UsageError(
                    f"{self.id}: rival {name!r} is {_brief(rival)}, which is not allowed: a rival is a function "
                    "Dataset -> Dataset, or what it says of checks, {check: number}; a setting to run is a control"
                )
        for name, control in self.controls.items():
            breach = control.breach if isinstance(control, Control) else control
            if not callable(breach) and not (isinstance(breach, Mapping) and all(map(_is_text, breach))):
                raise UsageError(
                    f"{self.id}: control {name!r} is {_brief(breach)}, which is not allowed: a control is a dict of fields that it "
                    "sets, or a function Dataset -> Dataset"
                )
            if same := [other for other, rival in rivals.items() if rival is breach]:
                raise UsageError(f"{self.id}: control {name!r} and rival {same[0]!r} are one function: it is one opponent, not two")

    def _check_bounds(self) -> None:
        """Refuse a claim to be upheld that does not say where its bounds come from."""
        if not (is_provenance(self.bounds) or (self.bounds is None and self.expected != "upheld")):
            raise UsageError(
                f"{self.id}: bounds={_brief(self.bounds)} is not allowed: it is 'paper', 'derived: from …' or jd.tuned(...)"
            )

    def _check_name(self) -> None:
        """Refuse a form expected to fail whose name does not say whether it was printed, or a printed one without its formula."""
        if not self.id.endswith(REFUTED):
            raise UsageError(
                f"{self.id}: a claim expected to be refuted is called …_as_printed (as it stands in a paper), …_naive (printed by "
                "nobody) or …_beyond (beyond the paper's assumptions)"
            )
        if self.id.endswith(REFUTED[0]) and not self.printed:
            raise UsageError(f"{self.id}: printed= is missing: the formula as it stands in print, and where")

    def as_printed(
        self,
        *,
        id: str,
        title: str,
        statement: str,
        form: str,
        printed: str | None = None,
        talks: tuple[str, ...] = (),
        source: str | None = None,
        judge: Judge | None = None,
        plot: Plot | None = None,
        caption: str | None = None,
    ) -> Claim:
        """The same runs and the same judge for another form of the prediction, expected to be refuted.

        It has no controls or rivals; instead the same judge must uphold this claim's form on the same runs.

        Args:
            id: ``…_as_printed`` where a paper has this form, ``…_naive`` where nobody printed it, ``…_beyond`` where the paper's
                statement is taken beyond its assumptions.
            title: of the new claim.
            statement: of the new claim.
            form: its name in the trial's observables.
            printed: the formula as it stands in print, and where.
            talks: rows of talks that state this form.
            source: None: this claim's.
            judge: None: this claim's; another one where this claim's also judges what the form says nothing about.
            plot: None: this claim's.
            caption: None: this claim's.
        """
        return dataclasses.replace(
            self,
            id=id,
            title=title,
            statement=statement,
            form=form,
            counterpart=self.form,
            sibling=self.id,
            controls={},
            rivals={},
            decides={},
            printed=printed,
            talks=talks,
            expected="refuted",
            source=source or self.source,
            judge=judge or self.judge,
            plot=plot or self.plot,
            caption=caption or self.caption,
        )

    @property
    def theory(self) -> str:
        """The claim id's prefix."""
        return self.id.split(".")[0]

    @property
    def counted(self) -> str:
        """The kind in which the claim is counted: upheld, misprint, beyond print, or measured."""
        return counted_as(self.id, self.expected)

    @property
    def records(self) -> dict[str, dict[str, Any]] | None:
        """The recorded value and interval of each reading, as in JSON; None if nothing was recorded."""
        if self.recorded is None:
            return None
        whole = {name: record if isinstance(record, tuple) else (record,) * 3 for name, record in self.recorded.items()}
        return {n: {"value": value, "interval": None if low == high else [low, high]} for n, (low, value, high) in whole.items()}

    def grid(self, scale: str) -> Grid:
        """The grid at ``quick`` or ``paper`` scale."""
        return self.paper if scale == "paper" and self.paper is not None else self.quick

    def seed_count(self, scale: str) -> int:
        """Number of seeds at ``quick`` or ``paper`` scale."""
        return self.paper_seeds if scale == "paper" and self.paper_seeds is not None else self.seeds
