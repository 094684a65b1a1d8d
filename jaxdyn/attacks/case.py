"""A case before the referee: a claim with its runs, and what attacks ask of it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import xarray as xr

from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.judging import agreement
from jaxdyn.engine.judging.check import Check, Reading, all_passed
from jaxdyn.engine.judging.judged_runs import ok_runs, outside, select_form
from jaxdyn.engine.judging.resolution import first_seeds, judged, read
from jaxdyn.engine.verification.result import Result
from jaxdyn.engine.verification.task import Task
from jaxdyn.errors import Inconclusive

__all__ = ["Attack", "Budget", "Case", "Reaction", "Runner"]

Reaction: TypeAlias = Literal["passes", "fails", "undecided", "raises"]
Runner: TypeAlias = "Callable[[Sequence[Task]], list[Result]]"
SEEDS = 256  # of the runs that an attack distorts, where the judge passes on so few


@dataclasses.dataclass
class Budget:
    """Seconds that costly attacks may take together, and those that they took."""

    seconds: float
    spent: float = 0.0

    @property
    def left(self) -> float:
        """Seconds that are left; none once all are spent."""
        return max(0.0, self.seconds - self.spent)

    def spend(self, seconds: float) -> None:
        """Take some seconds."""
        self.spent += seconds


@dataclasses.dataclass(frozen=True)
class Case:
    """A claim, its result on its own grid and seeds, and a way to make more runs.

    Args:
        claim: the claim.
        result: of its own runs, with their data.
        run: makes and judges the runs of more tasks; its runs are stored like all others.
        budget: seconds that costly attacks may take.
        quick: whether nothing that needs new runs is asked.
    """

    claim: Claim
    result: Result
    run: Runner
    budget: float
    quick: bool

    @functools.cached_property
    def time(self) -> Budget:
        """The seconds of :attr:`budget`, as costly attacks spend them."""
        return Budget(self.budget)

    @property
    def data(self) -> xr.Dataset:
        """All runs of the claim, with every form."""
        assert self.result.data is not None, "a case has runs"
        return self.result.data

    @property
    def measured(self) -> bool:
        """Whether the claim has readings in place of checks."""
        return self.claim.expected == "measured"

    @functools.cached_property
    def main(self) -> xr.Dataset:
        """The runs that the judge gets, at most :data:`SEEDS` seeds of them where it passes on these."""
        whole = self.judged_part(self.data)
        few = first_seeds(whole, SEEDS)
        if few.sizes.get("seed", 0) == whole.sizes.get("seed", 0) or self.reaction(few) != "passes":
            return whole
        return few

    def judged_part(self, data: xr.Dataset) -> xr.Dataset:
        """Of some runs of the trial, those that the judge gets: ok, inside the assumptions, in the claim's form."""
        return select_form(ok_runs(data, outside(self.claim, data)), self.claim.form)

    def answers(self, ds: xr.Dataset) -> list[Check | Reading]:
        """The judge's checks or readings on some runs, gates aside.

        Raises:
            Exception: whatever the judge raises.
        """
        if self.measured:
            return list(read(self.claim.judge, ds, opponent=True)[1])
        return [c for c in judged(self.claim.judge, ds, opponent=True) if not c.gate]

    @functools.cached_property
    def own(self) -> dict[str, Check | Reading]:
        """The judge's answers on the claim's own runs, by name."""
        return {a.name: a for a in self.answers(self.main)}

    def reaction(self, ds: xr.Dataset) -> Reaction:
        """What the judge says of other data: they pass, a check fails (a reading leaves its record), or neither."""
        try:
            answers = self.answers(ds)
        except Inconclusive:
            return "undecided"
        except BaseException as error:
            let_through(error)
            return "raises"
        if self.measured:
            passed = self._agree([a for a in answers if isinstance(a, Reading)])
        else:
            passed = all_passed(a for a in answers if isinstance(a, Check))
        return "undecided" if passed is None else "passes" if passed else "fails"

    def _agree(self, readings: Sequence[Reading]) -> bool | None:
        """Whether readings agree with the record, or without one with the claim's own readings; None if one is no number."""
        if any(np.isnan(r.value) for r in readings):
            return None
        records: Mapping[str, Any] = self.claim.recorded or {a.name: (a.ends[0], a.value, a.ends[1]) for a in self._own_readings}
        return all(agreement.differs(r, records[r.name]) is None for r in readings if r.name in records)

    @functools.cached_property
    def _own_readings(self) -> list[Reading]:
        return [a for a in self.answers(self.judged_part(self.data)) if isinstance(a, Reading)]


@dataclasses.dataclass(frozen=True)
class Attack:
    """One question of the referee.

    Args:
        name: by which claims excuse what it finds.
        asks: the question, in a sentence.
        ask: the answer for a case.
        costly: whether it makes new runs.
    """

    name: str
    asks: str
    ask: Callable[[Case], Any]
    costly: bool = False
