"""What a claim is: a trial, grids of settings, a judge, negative controls, and the outcome that is expected.

The engine runs ``trial(setting, key) -> Observables`` over a grid (``sweep.py``) and hands the labelled Dataset to the
judge (``verify.py``). In that Dataset a predicted array ``z`` is ``predicted_z``, its measurement ``measured_z``; recorded
arrays keep their names; ``status`` tells how each run ended. Dimensions: the grid's axes, ``seed``, then the arrays' own axes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import jax

from jaxdyn.engine.claims.contract import (
    EVIDENCE,
    MECHANISM,
    PROVENANCE,
    REFUTED,
    Assumption,
    Bounds,
    Evidence,
    TunedBounds,
    counted_as,
)
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.claims.observables import Observables
from jaxdyn.engine.storage.seeds import Seeds
from jaxdyn.errors import UsageError, flag, shown

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from jaxdyn.engine.judging.check import Check, Reading

__all__ = ["Breach", "Claim", "Control", "Judge", "Plot", "Rival", "Shared"]

Judge: TypeAlias = "Callable[[xr.Dataset], Sequence[Check | Reading]]"
Breach: TypeAlias = "Mapping[str, Any] | Callable[[xr.Dataset], xr.Dataset]"
Rival: TypeAlias = "Callable[[xr.Dataset], xr.Dataset] | Mapping[str, float | Callable[[xr.Dataset], float]] | Off"
Plot: TypeAlias = "Callable[[xr.Dataset, Figure], None]"


TITLE = 70  # characters of a title
LEAST_SEEDS = 6  # of a control's runs, if the claim has as many


@dataclasses.dataclass(frozen=True)
class Control:
    """A named breach of an assumption that the judge must reject.

    Args:
        breach: setting fields to override (a run of its own; swept fields share the main program), or a function
            Dataset -> Dataset that distorts the prediction or the data (costs no run).
        diverges: the breach shows itself by runs that diverge; otherwise diverged runs do not count as rejection.
        every_seed: a run of its own for every seed of the claim; by default for half of them, at least six, which is enough to
            reject what is far off.
    """

    breach: Breach
    diverges: bool = False
    every_seed: bool = False

    def __post_init__(self) -> None:
        flag("diverges", self.diverges)
        flag("every_seed", self.every_seed)

    def seeds(self, own: Seeds) -> Seeds:
        """Which of the claim's own seeds the control is run with."""
        return own if self.every_seed else own[: max(LEAST_SEEDS, -(-len(own) // 2))]


def _brief(value: Any) -> str:
    """A value as a refusal shows it, on one line."""
    return shown(value if getattr(value, "ndim", 0) or isinstance(value, int) else repr(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_record(record: Any) -> bool:
    """Whether this is a recorded value, with its interval or alone."""
    numbers = record if isinstance(record, tuple) else (record,) * 3
    return len(numbers) == 3 and all(map(_is_number, numbers)) and numbers[0] <= numbers[1] <= numbers[2]


def _are_assumptions(value: Any) -> bool:
    return isinstance(value, Assumption) or (isinstance(value, tuple | list) and all(isinstance(a, Assumption) for a in value))


def _or_none(is_allowed: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_allowed(value)


EXPECTED = ("upheld", "refuted", "measured")
ALLOWED: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (  # fields of a claim, what they may be, in words
    (("id", "title", "statement", "source"), _is_text, "a text"),
    (("form", "counterpart", "sibling", "caption", "printed", "tested"), _or_none(_is_text), "a text or None"),
    (("controls", "rivals"), lambda value: isinstance(value, Mapping), "a dict"),
    (("recorded",), _or_none(lambda value: isinstance(value, Mapping)), "a dict or None"),
    (("quick",), lambda value: isinstance(value, Grid), "a grid, jd.grid(...)"),
    (("paper",), _or_none(lambda value: isinstance(value, Grid)), "a grid, jd.grid(...), or None"),
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
    """What claims on the same runs may share, as a :class:`~jaxdyn.engine.claims.study.Study`; fields as in :class:`Claim`."""

    trial: Callable[[Any, jax.Array], Observables]
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim(Shared):
    r"""A statement about training dynamics that can fail.

    Args:
        id: ``theory.claim``; the name in code, tests, command line and report.
        title: what is claimed, in at most 70 characters that a colleague understands without the paper.
        statement: one or two sentences; mathematics in LaTeX between dollar signs.
        tested: how it is tested: model, data, optimiser, sizes, times. ``{field}`` stands for a field's values, ``{seeds}`` for the
            number of seeds.
        source: paper and theorem or equation.
        trial: ``(setting, key) -> Observables``: pure, jittable, module-level.
        quick: grid for 2 CPU cores; ``paper``: the publication's own scale (default: as quick).
        seeds, paper_seeds: number of seeds at either scale (1 where nothing is random).
        max_seeds: number of seeds up to which they are doubled while a check is undecided; None: none are added.
        judge: ``Dataset -> list[Check]``, deterministic; of a measured claim ``Dataset -> list[Reading]``, gates aside.
        controls: other worlds, in which the theory must fail: name -> breach (a dict of fields, a function on the Dataset, or a
            ``Control``).
        rivals: other theories, which must fail on the same data: name -> function Dataset -> Dataset that replaces predictions
            (``predicted_…``), or what the rival says of checks, ``{check: number}``, where the theory predicts nothing but a
            bound. A claim on a model, a network or a flow has the mechanism switched off among them, ``jd.off(...)``.
        evidence: what the measured side is: "model", "network", "flow", "reduced", "algebra" or "numbers"
            (``jaxdyn.engine.claims.contract``).
        assumes: bounds on scalars that the trial gives under ``assumed``; runs outside are not judged.
        expected: the verdict that counts as success: "upheld", "refuted" (a printed form that is wrong) or "measured" (open).
        form: which form of the prediction is judged, when the trial returns several.
        counterpart: for ``expected="refuted"``: the form that the same judge must uphold on the same data.
        sibling: the claim whose runs, judge and figure this one shares; set by :meth:`as_printed`.
        min_ok: share of runs that must end ``ok``; with fewer the verdict is ``inconclusive``.
        plot: ``(Dataset, Figure) -> None``: prediction against measurement over runs.
        caption: what the figure shows: its axes, what a band, a bar and a symbol mean.
        bounds: where bounds come from: "paper", "derived", or ``jd.tuned(on="0:8", confirmed_on="4000:4010")``; a claim to be
            upheld says so.
        printed: for ``…_as_printed``: the formula as it stands in print, and where.
        talks: what of the talks this decides, ``("talk:row", …)`` (``jaxdyn.report.talks``).
        recorded: for ``expected="measured"``: reading -> ``(low, value, high)``, or the number alone where it is not estimated, as
            recorded on the quick grid, for every reading; a run of that grid that disagrees makes the claim inconclusive. None:
            nothing was recorded yet.
        recorded_seeds: on how many seeds that was recorded; None: on as many as the claim has.
    """

    id: str
    title: str
    statement: str
    judge: Judge
    evidence: Evidence = None  # type: ignore[assignment]  # no claim goes without: refused below, with what is allowed
    controls: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    expected: Literal["upheld", "refuted", "measured"] = "upheld"
    counterpart: str | None = None
    sibling: str | None = None
    printed: str | None = None
    talks: tuple[str, ...] = ()
    recorded: Mapping[str, float | tuple[float, float, float]] | None = None
    recorded_seeds: int | None = None

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
        """Every part is of its kind, so that nothing fails after the runs."""
        of = f"{self.id}: " if isinstance(self.id, str) else ""
        for names, is_allowed, what in ALLOWED:
            for name in names:
                if not is_allowed(value := getattr(self, name)):
                    raise UsageError(f"{of}{name}={_brief(value)} is not allowed: it is {what}")
        for kind in ("controls", "rivals"):
            if odd := [key for key in getattr(self, kind) if not (isinstance(key, str) and key)]:
                raise UsageError(f"{self.id}: {kind} have names; {_brief(odd[0])} is none")

    def _check_contract(self) -> None:
        """What the claim rests on is stated, and rightly."""
        if self.evidence in MECHANISM and self.expected == "upheld" and not any(isinstance(r, Off) for r in self.rivals.values()):
            raise UsageError(
                f"{self.id}: a claim on a {self.evidence} needs a rival with the mechanism switched off: "
                'rivals={"nothing moves": jd.off(predicted_z="initial_z")}'
            )
        self._check_opponents()
        object.__setattr__(self, "assumes", (self.assumes,) if isinstance(self.assumes, Assumption) else tuple(self.assumes))
        if self.recorded is not None and self.expected != "measured":
            raise UsageError(f"{self.id}: recorded= is of claims that are expected to be measured")
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

    def _check_opponents(self) -> None:
        """Controls and rivals are different things, and rivals theories."""
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
        """A claim to be upheld says where its bounds come from."""
        allowed = isinstance(self.bounds, TunedBounds) or (isinstance(self.bounds, str) and self.bounds in PROVENANCE)
        if not (allowed or (self.bounds is None and self.expected != "upheld")):
            raise UsageError(f"{self.id}: bounds={_brief(self.bounds)} is not allowed: it is 'paper', 'derived' or jd.tuned(...)")

    def _check_name(self) -> None:
        """The name of a form that fails says whether it was printed; refuting a paper takes its words."""
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
        plot: Plot | None = None,
        caption: str | None = None,
    ) -> Claim:
        """The same runs and the same judge for another form of the prediction, expected to be refuted.

        It has no controls and rivals of its own: the same judge must uphold this claim's form on the same runs.

        Args:
            id: ``…_as_printed`` where a paper has this form, ``…_naive`` where nobody printed it, ``…_beyond`` where the paper's
                statement is taken beyond its assumptions.
            title: of the form as a claim.
            statement: the form as a claim.
            form: its name in the trial's observables.
            printed: the formula as it stands in print, and where.
            talks: what of the talks this form is.
            source: if it is not this claim's.
            plot: if it is not this claim's.
            caption: if it is not this claim's.
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
            printed=printed,
            talks=talks,
            expected="refuted",
            source=source or self.source,
            plot=plot or self.plot,
            caption=caption or self.caption,
        )

    @property
    def theory(self) -> str:
        """The claim id's prefix."""
        return self.id.split(".")[0]

    @property
    def counted(self) -> str:
        """What the claim is counted as: upheld, a misprint, beyond print, or measured."""
        return counted_as(self.id, self.expected)

    @property
    def records(self) -> dict[str, dict[str, Any]] | None:
        """What a measured claim's readings were, as in JSON: value and interval of each."""
        if self.recorded is None:
            return None
        whole = {name: record if isinstance(record, tuple) else (record,) * 3 for name, record in self.recorded.items()}
        return {n: {"value": value, "interval": None if low == high else [low, high]} for n, (low, value, high) in whole.items()}

    def grid(self, scale: str) -> Grid:
        """The settings to run at ``quick`` or ``paper`` scale."""
        return self.paper if scale == "paper" and self.paper is not None else self.quick

    def seed_count(self, scale: str) -> int:
        """How many seeds to run at ``quick`` or ``paper`` scale."""
        return self.paper_seeds if scale == "paper" and self.paper_seeds is not None else self.seeds
