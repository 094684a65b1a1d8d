"""Averages over settings: where cells lie on both sides of a bound, or of 1 for a ratio, their mean does not speak for them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import xarray as xr

from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.estimate import Look, python_value
from jaxdyn.engine.judging.resolution import judged, read
from jaxdyn.errors import Inconclusive
from jaxdyn.wording import plural

__all__ = ["AVERAGES"]

MOST = 200  # cells that are asked one by one
SHOWN = 3  # cells named in a finding
RATIO = re.compile(r"\bover (?!all\b|every\b|runs\b|seeds\b|time\b)|/|\bratio\b", re.I)  # names of numbers that 1 divides


def ask(case: Case) -> Answer:
    """Which checks pass on average although a cell fails by itself, and which ratios are means of cells on both sides of 1."""
    axes = [str(a) for a in case.main.status.dims if a != "seed" and case.main.sizes[a] > 1]
    estimated = [name for name, a in case.own.items() if a.interval is not None and _speaks(a)]
    if not axes or not estimated:
        what = "reading is a ratio estimated" if case.measured else "check is an estimate"
        return not_applicable(f"no {what} over several settings")
    findings, asked, alone, cells = list[Finding](), dict[str, int](), dict[str, int](), 0
    for group in dict.fromkeys((tuple(axes), *((axis,) for axis in axes))):  # single axes where a judge needs all values of others
        rest = [name for name in estimated if name not in asked]
        outcomes = _outcomes(case, group) if rest else []
        found = {name: [(at, one) for at, one in outcomes if one.name == name] for name in rest}
        findings += [finding for name, answers in found.items() if (finding := _finding(name, answers)) is not None]
        cells += len({repr(at) for at, _ in outcomes})
        if len(group) == len(axes):
            asked = {name: len(answers) for name, answers in found.items() if answers}
        else:
            alone.update({name: len(answers) + alone.get(name, 0) for name, answers in found.items() if answers})
    asked |= alone
    if not asked:
        return not_applicable("nothing can be asked of one setting")
    findings = list({f.subject: f for f in reversed(findings)}.values())
    return answered(f"{plural(len(asked), 'estimate')} asked in {plural(cells, 'cell')} one by one", findings, cells=asked)


def _outcomes(case: Case, axes: Sequence[str]) -> list[tuple[dict[str, Any], Check | Reading]]:
    """The answers on each cell along some axes, the others whole."""
    cells = list(_cells(case.main, axes))
    if len(cells) > MOST:
        cells = cells[:: -(-len(cells) // MOST)]
    return [(at, one) for at, ds in cells for one in _answers(case, ds, len(cells))]


def _cells(ds: xr.Dataset, axes: Sequence[str]) -> Iterator[tuple[dict[str, Any], xr.Dataset]]:
    """Each cell of the grid with its coordinates, as data with axes of length 1."""
    for places in itertools.product(*(range(ds.sizes[axis]) for axis in axes)):
        part = ds.isel({axis: [i] for axis, i in zip(axes, places, strict=True)})
        yield {axis: python_value(part[axis].values[0]) for axis in axes if axis in part.coords}, part


def _speaks(one: Check | Reading) -> bool:
    """Whether a mean is taken to speak for its cells: a check that passes, a ratio."""
    return bool(one.passed) if isinstance(one, Check) else RATIO.search(one.name) is not None


def _answers(case: Case, ds: xr.Dataset, cells: int) -> Sequence[Check | Reading]:
    """The answers on one cell, at a level at which those of all cells hold together; none if the judge needs more than a cell."""
    judge = Look(case.claim.judge, 1 / cells)
    try:
        if case.measured:
            return read(judge, ds, narrowed=True, opponent=True)[1]
        return judged(judge, ds, narrowed=True, opponent=True)
    except Inconclusive:
        return []
    except BaseException as error:
        let_through(error)
        return []


def _finding(name: str, found: Sequence[tuple[dict[str, Any], Check | Reading]]) -> Finding | None:
    """The finding in the answers of all cells on one mean, if there is one."""
    failing = [one for one in found if isinstance(one[1], Check) and one[1].passed is False]
    if failing:
        text = (
            f"{name!r} passes on average, but {plural(len(failing), 'cell')} of {len(found)} fail by themselves: {_places(failing)}"
        )
        return Finding(name, text)
    below, above = (
        [one for one in found if isinstance(one[1], Reading) and one[1].interval is not None and beyond(one[1].interval)]
        for beyond in (lambda ends: ends[1] < 1, lambda ends: ends[0] > 1)
    )
    if not (below and above):
        return None
    return Finding(name, f"{name!r} is a mean of settings on both sides of 1: {_places(below)}; and {_places(above)}")


def _places(found: Sequence[tuple[dict[str, Any], Check | Reading]]) -> str:
    """Values and where they lie, the first few of them."""
    places = "; ".join(f"{one.value:.3g} at {', '.join(f'{k} = {v}' for k, v in at.items())}" for at, one in found[:SHOWN])
    return places + (f", and {len(found) - SHOWN} more" if len(found) > SHOWN else "")


AVERAGES = Attack("averages", "Does the mean speak for every setting?", ask)
