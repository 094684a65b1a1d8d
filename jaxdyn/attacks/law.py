"""The law, operation by operation: does a check notice when one number of the theory is half as large, or twice?"""

from __future__ import annotations

import dataclasses
import functools
import linecache
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.attacks.answer import Answer, Finding, answered, not_applicable, not_asked
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.attacks.equations import Slot
from jaxdyn.attacks.gains import ROWS, Law, Row
from jaxdyn.attacks.parts import Part, parts_of, with_part
from jaxdyn.engine.base.failure import PACKAGE, let_through
from jaxdyn.engine.runs.blocks import Request, Runs
from jaxdyn.wording import plural

__all__ = ["LAW", "largest_change", "source_line", "read_predictions"]

COARSE = (0.5, 2.0)  # a check has to notice one of these
LADDER = (0.01, 0.02, 0.05, 0.1, 0.2)  # relative gains, both ways, at which the checks may begin to notice
MOVED = 0.1  # least relative change of a predicted number for which a gain has to be noticed
NEAR_ZERO = 1e-3  # of a prediction's largest number: smaller ones do not count
SAME = 1e-5  # relative difference between a prediction and the same one evaluated again
QUICK, LONG = 8.0, 120.0  # seconds of processor time after which no further gain is tried, with --quick and without
TRAINING = 20.0  # seconds of training before the theory that --quick does not spend


def ask(case: Case) -> Answer:
    """Which equations of the theory the checks notice."""
    if case.claim.expected == "refuted":
        return not_applicable("its form is refuted: the counterpart's claim is asked")
    law = _law_of(case.result.task.main)
    read = read_predictions(case)
    if not law.slots or not read:
        return not_applicable(
            "no equation belongs to the prediction alone: it is made in the judge, or shares all with the network"
        )
    if case.quick and law.trains and case.result.run_seconds > TRAINING:
        return not_asked("the prediction starts from the trained network")
    return _Inquiry(case, law, read, time.process_time() + (QUICK if case.quick else LONG)).answer()


@functools.lru_cache(maxsize=4)
def _laws(key: tuple[Any, ...]) -> list[Law]:
    """A place for the law of some requested runs, which claims on the same runs share."""
    return []


def _law_of(request: Request) -> Law:
    place = _laws((*((Runs.program_key(program), swept) for program, swept in request.cells), tuple(request.seeds)))
    if not place:
        place.append(Law.of(request))
    return place[0]


def read_predictions(case: Case) -> list[str]:
    """The predictions that the judge reads: without numbers in one it does not pass, and with others it says something else."""
    names = [str(n) for n in case.main.data_vars if str(n).startswith("predicted_") and case.main[n].dtype.kind == "f"]
    return [name for name in names if _is_read(case, name)]


def _is_read(case: Case, name: str) -> bool:
    values = case.main[name]
    # a check of some of the runs is undecided where any number is missing
    return case.reaction(case.main.assign({name: values * np.nan})) != "passes" and _is_heard(case, Part(name))


def _is_heard(case: Case, part: Part) -> bool:
    """Whether the judge says something else with other numbers in a part of a prediction."""
    try:
        said = case.answers(with_part(case.main, part, lambda values: 3 * values + 1))
    except BaseException as error:
        let_through(error)
        return True
    return {(a.name, a.value, a.interval) for a in said} != {(a.name, a.value, a.interval) for a in case.own.values()}


def _reads_place(case: Case, part: Part) -> bool:
    """Whether the judge reads a place of a prediction that it reads: it misses the numbers there, or says something else."""
    without = with_part(case.main, part, lambda values: values * np.nan)
    return case.reaction(without) != "passes" or _is_heard(case, part)


@dataclasses.dataclass
class _Inquiry:
    """The gains of one law, asked of one judge, within a time.

    Args:
        case: the case.
        law: its law.
        read: the predictions that its judge reads.
        until: the processor time (:func:`time.process_time`) after which no further gain is tried.
        known: whether a check fails, by predictions.
    """

    case: Case
    law: Law
    read: Sequence[str]
    until: float
    known: dict[bytes, bool] = dataclasses.field(default_factory=dict)

    def answer(self) -> Answer:
        """The answer."""
        leaders = self.leaders()
        (base,) = self.noticed([None])
        if base is None:
            return not_asked("evaluated again, the prediction is another")
        if base:
            return not_asked("the claim's own runs do not pass")
        coarse = self.within_time(list(leaders), COARSE)
        if leaders and not coarse:
            return not_asked("its predictions take too long to make again")
        asked = {slot: pair for slot, pair in coarse.items() if any(one is not None for one in pair)}
        blind = [slot for slot, pair in asked.items() if True not in pair]
        edges = self.edges([slot for slot in asked if slot not in blind])
        count, unseen = (sum(len(leaders[slot]) for slot in some) for some in (asked, blind))
        facts: dict[str, Any] = {"equations": count, "noticed at a factor of 2": count - unseen}
        detail = f"{count - unseen} of {plural(count, 'equation')} are noticed at half or twice their value"
        if edges:
            tenth = sum(len(leaders[slot]) for slot, (low, high) in edges.items() if low > 0.9 and high < 1.11)
            known = sum(len(leaders[slot]) for slot in (*edges, *blind))
            factors = [self.described(slot) | {"low": low, "high": high} for slot, (low, high) in edges.items()]
            facts |= {"noticed at 10%": tenth, "asked at 10%": known, "factors": factors}
            detail += f", {tenth} of {known} at 10%"
        if left := sum(len(leaders[slot]) for slot in leaders if slot not in coarse):
            facts["not asked"] = left
            detail += f"; {left} more were not asked, for want of time"
        facts["not noticed"] = [self.described(slot) for slot in blind]
        return answered(detail, [_finding(slot, len(leaders[slot])) for slot in blind], **facts)

    def leaders(self) -> dict[Slot, list[Slot]]:
        """Slots with different effects on what the judge reads, and for each those with the same; the largest groups first.

        They are compared in some runs of each program, at twice their value.
        """
        base, effects = self.law.effects
        names = [name for name in base if f"predicted_{name.partition(' ')[2]}" in self.read]
        found: dict[bytes, list[Slot]] = {}
        for slot, values in effects.items():
            if max(largest_change(values[name], base[name]) for name in names) > MOVED:
                key = b"".join(_rounded(values[name]).tobytes() for name in names)
                found.setdefault(key, []).append(slot)
        return {each[0]: each for each in sorted(found.values(), key=len, reverse=True)}

    def within_time(self, slots: Sequence[Slot], gains: Sequence[float]) -> dict[Slot, list[bool | None]]:
        """For each slot that is reached in time, the outcome at each gain."""
        found: dict[Slot, list[bool | None]] = {}
        each = max(1, ROWS // len(gains))
        for some in (slots[i : i + each] for i in range(0, len(slots), each)):
            if time.process_time() > self.until:
                break
            outcomes = self.noticed([(slot, gain) for slot in some for gain in gains])
            found |= {slot: outcomes[k * len(gains) : (k + 1) * len(gains)] for k, slot in enumerate(some)}
        return found

    def noticed(self, rows: Sequence[Row]) -> list[bool | None]:
        """For each row whether a check fails; None if no predicted number that is read moves by a tenth, or one is not finite."""
        found: list[bool | None] = []
        raw = self.case.data.isel(seed=slice(self.case.main.sizes["seed"]))
        for row, predictions in zip(rows, self.law.predictions(rows, self.case.main.seed.values.tolist()), strict=True):
            ds = self.case.judged_part(raw.assign({name: predictions[name].astype(raw[name].dtype) for name in self.read}))
            coarse = row is not None and row[1] in COARSE
            fails = None if coarse and not self._moved(ds) else self._fails(ds)
            found.append(None if coarse and fails is False and not self._moved(ds, where_read=True) else fails)
            if row is None and not self._same(ds):
                return [None] * len(rows)
        return found

    def _same(self, ds: xr.Dataset) -> bool:
        return all(largest_change(ds[name].values, self.case.main[name].values) <= SAME for name in self.read)

    def _moved(self, ds: xr.Dataset, *, where_read: bool = False) -> bool:
        """Whether a number that is read moves by a tenth; ``where_read``: at a place that the judge reads, of axes with names."""
        parts = self.places if where_read else [(name, {}) for name in self.read]
        changes = [largest_change(ds[name].sel(at).values, self.case.main[name].sel(at).values) for name, at in parts]
        return bool(np.isfinite(changes).all()) and max(changes, default=0.0) > MOVED

    @functools.cached_property
    def places(self) -> list[tuple[str, dict[str, list[Any]]]]:
        """The predictions that are read, each with the named places at which the judge reads it."""
        found = []
        for name in self.read:
            parts = parts_of(self.case.main, name)
            by_axis = {axis: [part for part in parts if part.axis == axis] for axis in dict.fromkeys(part.axis for part in parts)}
            at = {axis: [p.place for p in some if _reads_place(self.case, p)] for axis, some in by_axis.items() if axis}
            found.append((name, {axis: places for axis, places in at.items() if places}))
        return found

    def _fails(self, ds: xr.Dataset) -> bool:
        with np.errstate(over="ignore"):  # a law that is off by a factor may leave the range
            key = b"".join(np.asarray(ds[name].values, np.float32).tobytes() for name in self.read)
        if key not in self.known:
            self.known[key] = self.case.reaction(ds) == "fails"
        return self.known[key]

    def edges(self, slots: Sequence[Slot]) -> dict[Slot, tuple[float, float]]:
        """For each slot that is reached in time, the factors below and above 1 at which a check begins to notice.

        0 and infinity where it does not notice half, or twice.
        """
        gains = [*(1 / (1 + step) for step in LADDER), *(1 + step for step in LADDER), *COARSE]
        found = {}
        for slot, outcomes in self.within_time(slots, gains).items():
            seen = [gain for gain, one in zip(gains, outcomes, strict=True) if one]
            found[slot] = max((g for g in seen if g < 1), default=0.0), min((g for g in seen if g > 1), default=float("inf"))
        return found

    def described(self, slot: Slot) -> dict[str, Any]:
        """A slot in JSON types, with the code of its line."""
        return {"where": str(slot), "code": source_line(slot.place)}


def largest_change(values: Any, before: Any) -> float:
    """The largest relative change of a number that is not small among its kind; infinite if one is no longer finite."""
    values, before = np.asarray(values, float), np.asarray(before, float)
    there = np.isfinite(before)
    if not there.any():
        return 0.0
    if not np.isfinite(values[there]).all():
        return float("inf")
    size = np.abs(before[there])
    large = size > NEAR_ZERO * size.max() if size.max() > 0 else np.ones_like(size, bool)
    moved = np.abs(values[there] - before[there])[large]
    scale = np.where(size[large] > 0, size[large], 1.0)
    return float((moved / scale).max()) if moved.size else 0.0


def _rounded(values: Any) -> Any:
    """Numbers with about eight digits, so that equal effects are equal."""
    values = np.asarray(values, float)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (np.floor(np.log10(np.abs(values))) - 7)
        return np.where(np.isfinite(scale) & (scale > 0), np.round(values / scale) * scale, np.nan_to_num(values)).astype(
            np.float32
        )


def _finding(slot: Slot, count: int) -> Finding:
    more = f" (and {plural(count - 1, 'equation')} with the same effect)" if count > 1 else ""
    text = f"no check notices when a number of the law is half as large, or twice: `{source_line(slot.place)}`, {slot}{more}"
    return Finding(str(slot), text)


def source_line(place: str) -> str:
    """The source line at a place."""
    file, _, line = place.rpartition(":")
    path = PACKAGE.parent / file if not Path(file).is_absolute() and (PACKAGE.parent / file).is_file() else Path(file)
    return linecache.getline(str(path), int(line)).strip() if line.isdigit() else ""


LAW = Attack("law", "Do the checks notice when a number of the theory's equations is half as large, or twice?", ask)
