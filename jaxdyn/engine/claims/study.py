"""Studies: the fields that several claims on the same runs share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict, Unpack

from jaxdyn.engine.claims.claim import Breach, Claim, Control, Judge, Plot, Rival, Shared
from jaxdyn.engine.claims.contract import Assumption, Bounds, Evidence
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.errors import UsageError

__all__ = ["Own", "Study"]


class Own(TypedDict, total=False):
    """Fields that a claim of a study may set; the study gives those that it leaves out or sets to None."""

    id: Required[str]
    title: Required[str]
    statement: Required[str]
    judge: Judge | None
    controls: Mapping[str, Breach | Control] | None
    expected: Literal["upheld", "refuted", "measured"]
    form: str | None
    counterpart: str | None
    source: str | None
    quick: Grid | None
    paper: Grid | None
    seeds: int | None
    paper_seeds: int | None
    max_seeds: int | None
    tested: str | None
    min_ok: float | None
    plot: Plot | None
    caption: str | None
    bounds: Bounds | str | None
    evidence: Evidence | None
    assumes: tuple[Assumption, ...] | None
    rivals: Mapping[str, Rival] | None
    printed: str | None
    talks: tuple[str, ...]
    recorded: Mapping[str, float | tuple[float, float, float]] | None
    recorded_seeds: int | None
    holds: Mapping[str, tuple[float, float]]
    invariant: bool
    excused: Mapping[str, str]
    decides: Mapping[str, tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study(Shared):
    """Runs that several claims share: a trial, its grids and seeds, and where the statements come from.

    ``study.claim(id=…, statement=…, judge=…)`` makes a claim; its own fields take precedence over the study's.
    Fields as in :class:`~jaxdyn.engine.claims.claim.Claim`.
    """

    judge: Judge | None = None
    evidence: Evidence | None = None

    def claim(self, **own: Unpack[Own]) -> Claim:
        """A claim on this study's runs. One that is expected to be measured has no bounds, not even the study's.

        Raises:
            UsageError: claims do not have this argument, neither the study nor the claim has a judge or evidence, or the claim
                itself is not allowed.
        """
        if odd := own.keys() - Own.__annotations__.keys():
            raise UsageError(f"{min(odd)}= is not allowed: a claim of a study takes {', '.join(Own.__annotations__)}")
        parts: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if own.get("expected") == "measured":
            del parts["bounds"]
        parts |= {name: value for name, value in own.items() if value is not None}
        for name, what in (("judge", "has no judge"), ("evidence", "states no evidence")):
            if parts[name] is None:
                raise UsageError(f"{own.get('id')} {what}: give {name}= to the study or to the claim")
        return Claim(**parts)
