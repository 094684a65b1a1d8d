"""Parts of what is measured: is each of them wrong in some opponent whom the judge rejects for it?

A check that takes the largest of several errors may be rejected for one of them by all opponents; then nothing shows that it would
notice the others. So one part of an opponent's data at a time is put into the claim's own, and the judge is asked again: parts are
the measured variables and, along an axis with named places (eight axioms, three layers), each place. A rival that gives numbers
violates a part if a check that reads the part is told apart from its number.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import xarray as xr

from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging.judged_runs import ok_runs
from jaxdyn.engine.judging.opponents import control_runs, rival_runs
from jaxdyn.wording import plural

__all__ = ["PARTS", "Part", "parts_of", "with_part"]

PLACES = 16  # most places of an axis that are asked one by one


class Part(NamedTuple):
    """A part of what is measured: a variable, or its place along a named axis."""

    name: str
    axis: str = ""
    place: Any = None

    def __str__(self) -> str:
        return self.name if not self.axis else f"{self.name} at {self.axis} = {self.place}"


def ask(case: Case) -> Answer:
    """Which parts of what is measured are violated by no opponent."""
    if case.claim.expected == "refuted":
        return not_applicable("its form is refuted: the counterpart's claim is asked")
    parts = [part for part in _parts(case.main) if _matters(case, part)]
    if len(parts) < 2:
        return not_applicable("a single number is measured")
    opponents = list(_opponents(case))
    violated = {
        part: [name for name, ds in opponents if _rejected(case, part, ds)] or list(_by_numbers(case, part)) for part in parts
    }
    findings = [Finding(str(part), f"no control and no rival violates {part} by itself") for part, by in violated.items() if not by]
    facts = {str(part): by for part, by in violated.items()}
    return answered(
        f"{plural(len(parts), 'part')} of what is measured, each put into the claim's runs from an opponent's", findings, **facts
    )


def parts_of(ds: xr.Dataset, name: str) -> list[Part]:
    """The parts of a variable: its places along named axes, or the whole."""
    named = [str(a) for a in ds[name].dims if a in ds.coords and a not in ds.status.dims and ds[a].dtype.kind in "UO"]
    axes = [axis for axis in named if 1 < ds.sizes[axis] <= PLACES]
    return [Part(name, axis, place) for axis in axes for place in ds[axis].values.tolist()] or [Part(name)]


def _parts(ds: xr.Dataset) -> Iterator[Part]:
    """The parts of the measured variables."""
    for name in (str(n) for n in ds.data_vars if str(n).startswith("measured_")):
        yield from parts_of(ds, name)


def _matters(case: Case, part: Part) -> bool:
    """Whether the judge reads a part: with wild numbers there, it does not pass."""
    return any(case.reaction(with_part(case.main, part, edit)) != "passes" for edit in (_wild, lambda values: -_wild(values)))


def _wild(values: xr.DataArray) -> xr.DataArray:
    return values * 1e3 + 1e3


def with_part(ds: xr.Dataset, part: Part, edit: Callable[[xr.DataArray], xr.DataArray]) -> xr.Dataset:
    """The data with one part edited; its prediction stays."""
    values = ds[part.name]
    wide = values.astype(float) if values.dtype.kind in "iub" else values
    new = edit(wide)
    return ds.assign({part.name: new if not part.axis else wide.where(wide[part.axis] != part.place, new)})


def _opponents(case: Case) -> Iterator[tuple[str, xr.Dataset]]:
    """The data of every control and of every rival that predicts numbers of its own."""
    claim, main = case.claim, case.main
    for name, control in claim.controls.items():
        try:
            yield name, ok_runs(control_runs(name, control, claim, main, case.result.control_data))
        except BaseException as error:
            let_through(error)
    for name, rival in claim.rivals.items():
        theory = rival.rival if isinstance(rival, Off) else rival
        if callable(theory):
            try:
                yield name, rival_runs(name, theory, main)
            except BaseException as error:
                let_through(error)


def _by_numbers(case: Case, part: Part) -> Iterator[str]:
    """Rivals that give numbers of checks, or readings, which read the part and are told apart from them."""
    try:
        said = {answer.name: answer.value for answer in case.answers(with_part(case.main, part, _wild))}
    except BaseException as error:
        let_through(error)
        return
    heard = {name for name, own in case.own.items() if said.get(name) != own.value}
    for outcome in case.result.rivals:
        rival = case.claim.rivals[outcome.name]
        theory = rival.rival if isinstance(rival, Off) else rival
        if isinstance(theory, Mapping):
            apart = {*outcome.apart, *(check.name for check in outcome.checks if check.passed is False)}
            if heard & apart & theory.keys():
                yield outcome.name


def _rejected(case: Case, part: Part, other: xr.Dataset) -> bool:
    """Whether the judge rejects the claim's runs with this part, measured and predicted, of an opponent's."""
    main = case.main
    if "seed" in main.dims and "seed" in other.dims and other.sizes["seed"] < main.sizes["seed"]:
        main = main.sel(seed=[seed for seed in main.seed.values if seed in other.seed.values])
    changed = main
    for prefix, suffix in itertools.product(("measured_", "predicted_"), [part.name.removeprefix("measured_")]):
        name = prefix + suffix
        if name not in main or name not in other or other[name].dims != main[name].dims or other[name].shape != main[name].shape:
            continue
        theirs = xr.DataArray(other[name].values, main[name].coords, main[name].dims)
        one = part._replace(name=name) if part.axis in main[name].dims else Part(name)
        changed = with_part(changed, one, functools.partial(_like, theirs))
    return changed is not main and case.reaction(changed) == "fails"


def _like(theirs: xr.DataArray, own: xr.DataArray) -> xr.DataArray:
    return theirs.astype(own.dtype)


PARTS = Attack("parts", "Is every part of what is measured violated by an opponent?", ask)
