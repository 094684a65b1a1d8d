"""Studies: what several claims on the same runs share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import jax

from jaxdyn.engine.claim import Breach, Claim, Control, Judge, Plot, Rival
from jaxdyn.engine.contract import Assumption, Bounds, Evidence
from jaxdyn.engine.observables import Observables
from jaxdyn.engine.setting import Grid
from jaxdyn.errors import UsageError

__all__ = ["Study"]

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """Runs that several claims share: a trial, its grids and seeds, and where the statements come from.

    ``study.claim(id=…, statement=…, judge=…)`` makes a claim; what it names itself goes before what the study says.
    Fields as in :class:`~jaxdyn.engine.claim.Claim`.
    """

    trial: Callable[[Any, jax.Array], Observables]
    quick: Grid
    source: str
    paper: Grid | None = None
    seeds: int = 1
    paper_seeds: int | None = None
    max_seeds: int | None = None
    tested: str | None = None
    judge: Judge | None = None
    form: str | None = None
    min_ok: float = 1.0
    plot: Plot | None = None
    caption: str | None = None
    bounds: Bounds | str | None = None
    evidence: Evidence | None = None
    assumes: tuple[Assumption, ...] = ()
    rivals: Mapping[str, Rival] = dataclasses.field(default_factory=dict)

    def claim(
        self,
        *,
        id: str,
        title: str,
        statement: str,
        judge: Judge | None = None,
        controls: Mapping[str, Breach | Control] | None = None,
        expected: Literal["upheld", "refuted", "measured"] = "upheld",
        form: str | None = None,
        counterpart: str | None = None,
        source: str | None = None,
        quick: Grid | None = None,
        paper: Grid | None = None,
        seeds: int | None = None,
        paper_seeds: int | None = None,
        max_seeds: int | None = None,
        tested: str | None = None,
        min_ok: float | None = None,
        plot: Plot | None = None,
        caption: str | None = None,
        bounds: Bounds | str | None = None,
        evidence: Evidence | None = None,
        assumes: tuple[Assumption, ...] | None = None,
        rivals: Mapping[str, Rival] | None = None,
        printed: str | None = None,
        talks: tuple[str, ...] = (),
        recorded: Mapping[str, float | tuple[float, float, float]] | None = None,
        recorded_seeds: int | None = None,
    ) -> Claim:
        """A claim on this study's runs.

        Raises:
            UsageError: if neither the study nor the claim has a judge or evidence, or the claim itself is not allowed.
        """
        chosen, kind = _own(judge, self.judge), _own(evidence, self.evidence)
        if chosen is None:
            raise UsageError(f"{id} has no judge: give judge= to the study or to the claim")
        if kind is None:
            raise UsageError(f"{id} states no evidence: give evidence= to the study or to the claim")
        given: dict[str, Any] = {"source": source, "quick": quick, "paper": paper, "seeds": seeds, "paper_seeds": paper_seeds}
        given |= {"tested": tested, "form": form, "min_ok": min_ok, "plot": plot, "caption": caption, "assumes": assumes}
        given |= {"rivals": rivals, "max_seeds": max_seeds}
        shared: dict[str, Any] = {name: _own(value, getattr(self, name)) for name, value in given.items()}
        return Claim(
            id=id,
            title=title,
            statement=statement,
            trial=self.trial,
            judge=chosen,
            controls=controls or {},
            expected=expected,
            counterpart=counterpart,
            bounds=_own(bounds, None if expected == "measured" else self.bounds),  # what was recorded decides there
            evidence=kind,
            printed=printed,
            talks=talks,
            recorded=recorded,
            recorded_seeds=recorded_seeds,
            **shared,
        )


def _own(own: T | None, shared: T) -> T:
    return shared if own is None else own
