"""Numbers that rivals give for checks: could any network, or any data, have them?

A rival that gives a number gives what its theory would find. A number that the check cannot have is rejected by whatever bound
there is, and says nothing of the check. What a check can have is asked in two ways:

- by its name: a share, an accuracy or a probability lies from 0 to 1, a correlation or a cosine from -1 to 1, and a difference of
  two such numbers within the difference of these limits. Names in which such a word is one part of another quantity (a ratio, a
  power, an error, a percentage) say nothing.
- by the judge: it is asked on the claim's runs with their numbers changed in sign and size, exchanged, replaced by noise, and on
  single seeds. If all its values, the opponents' among them, lie from 0 to 1, or from -1 to 1, and come near both ends, or if all
  are whole numbers, then that is what it can have. Values that happen to lie there do not decide; nor do values that are not
  negative: a distance from a narrow range, negative inside, seldom is.

An infinite number is one that some value of the check is, too.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping

import numpy as np
import xarray as xr

from jaxdyn.attacks.answer import Finding
from jaxdyn.attacks.case import Case
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.engine.judging.decision import Decision, Outcome

__all__ = ["answers", "named_range", "unattainable", "why_not_attained"]

SECONDS = 10.0  # that the judge is asked on changed runs
ROUNDS = 3  # of noise and exchanges
FEW = 6  # different values from which a range can be told
NEAR = 0.1  # distance of a value from an end that it comes near, in units of the range
SLACK = 1e-6

SHARES = re.compile(r"\b(?:share|accuracy|fraction|probability|recall)\b", re.I)
CORRELATIONS = re.compile(r"\b(?:correlation|cosine)\b", re.I)
DIFFERENCES = re.compile(r"\b(?:minus|gain(?:ed)?|lost|fall|rise|change|difference|drop|excess|ahead)\b| - ", re.I)
OTHERS = re.compile(
    r"/|%|\bper\b|\b(?:over|times|ratio|relative|power|slope|ln|log|logarithm|exponent|percent\w*|error|distance|deviation|against|from|"
    r"sum|squared?|number|epochs?|steps?|time|nats|bits?|loss|perplexity|norm|z-score)\b",
    re.I,
)


def answers(one: Decision | Outcome) -> list[Check | Reading]:
    """The checks of a decision or of an opponent's outcome, or its readings."""
    return [*one.checks, *one.readings]


def unattainable(case: Case) -> Iterator[Finding]:
    """Numbers of rivals that no run could give."""
    given = {
        outcome.name: {one.name: one.value for one in answers(outcome)}
        for outcome in case.result.rivals
        if isinstance(_theory(case, outcome.name), Mapping)
    }
    values = _known(case, {*given})
    odd = {check for numbers in given.values() for check, number in numbers.items() if not _between(number, values.get(check, []))}
    if odd:
        for check, more in _asked_on_changed_runs(case).items():
            values.setdefault(check, []).extend(more)
    for rival, numbers in given.items():
        for check in (name for name in numbers if name in odd):
            if (why := why_not_attained(check, numbers[check], values.get(check, []))) is not None:
                yield Finding(rival, f"rival {rival!r} gives {numbers[check]:.4g} for {check!r}, which no run can: {why}")


def _theory(case: Case, name: str) -> object:
    rival = case.claim.rivals[name]
    return rival.rival if isinstance(rival, Off) else rival


def _known(case: Case, given: set[str]) -> dict[str, list[float]]:
    """The values of each check or reading: the claim's own, and those of opponents that do not give numbers."""
    result = case.result
    found: dict[str, list[float]] = {}
    others = [o for o in (*result.controls, *result.rivals) if o.name not in given]
    for one in (*answers(result), *(a for other in others for a in answers(other))):
        found.setdefault(one.name, []).append(one.value)
    return found


def _between(number: float, values: list[float]) -> bool:
    """Whether a number lies between the smallest and the largest value, whole where all of them are."""
    finite = [v for v in values if math.isfinite(v)]
    return bool(finite) and min(finite) <= number <= max(finite) and (number % 1 == 0 or any(v % 1 for v in finite))


def why_not_attained(check: str, number: float, values: list[float]) -> str | None:
    """Why a check of this name and these values cannot have a number; None if it may.

    Args:
        check: the check's name.
        number: what a rival gives.
        values: of the check on all kinds of runs, those that are no numbers left out.
    """
    if not math.isfinite(number):
        return None if number in values else "it is not finite"
    finite = [v for v in values if math.isfinite(v)]
    low, high = named_range(check)
    if all(low - SLACK <= v <= high + SLACK for v in finite) and not low - SLACK <= number <= high + SLACK:
        return f"it lies from {low:g} to {high:g}"
    return _why_by_values(number, finite)


def named_range(check: str) -> tuple[float, float]:
    """The range of a check by its name; infinite where the name says nothing."""
    top, bottom = (1.0, 0.0) if SHARES.search(check) else (1.0, -1.0) if CORRELATIONS.search(check) else (math.inf, -math.inf)
    if math.isinf(top) or OTHERS.search(check):
        return -math.inf, math.inf
    return (bottom - top, top - bottom) if DIFFERENCES.search(check) else (bottom, top)


def _why_by_values(number: float, values: list[float]) -> str | None:
    if len({round(v, 9) for v in values}) < FEW:
        return None
    least, most = min(values), max(values)
    for low, high in ((0.0, 1.0), (-1.0, 1.0)):
        near = NEAR * (high - low)
        if low - SLACK <= least <= low + near and high - near <= most <= high + SLACK and not low - SLACK <= number <= high + SLACK:
            return f"it lies from {low:g} to {high:g}, whatever the runs are"
    if all(v % 1 == 0 for v in values) and (number % 1 or number < 0 <= least):
        return "it is a whole number" + (", not negative," if least >= 0 else ",") + " whatever the runs are"
    return None


# runs with other numbers


def _asked_on_changed_runs(case: Case) -> dict[str, list[float]]:
    """Values of the checks on single seeds and on changed runs; what the judge refuses is left out."""
    found: dict[str, list[float]] = {}
    began = time.monotonic()
    for ds in _changed_runs(case.main):
        if time.monotonic() - began > SECONDS:
            break
        try:
            answers = case.answers(ds)
        except BaseException as error:
            let_through(error)
            continue
        for one in answers:
            if not math.isnan(one.value):
                found.setdefault(one.name, []).append(one.value)
    return found


def _changed_runs(main: xr.Dataset) -> Iterator[xr.Dataset]:
    """The runs of single seeds, then all runs with numbers of other signs and sizes, exchanged, and replaced by noise."""
    names = [str(n) for n, v in main.data_vars.items() if n != "status" and v.dtype.kind == "f"]
    sides = [names, *([n for n in names if n.startswith(side)] for side in ("measured_", "predicted_"))]
    for size in (-1.0, 10.0, 0.0):
        yield from (main.assign({n: main[n] * size for n in side}) for side in sides if side)
    for seed in range(min(main.sizes.get("seed", 0), 2 * FEW)):
        yield main.isel(seed=[seed])
    random = np.random.default_rng(0)
    for _ in range(ROUNDS):
        for side in (side for side in sides if side):
            yield main.assign({n: main[n].copy(data=_shuffled(main[n].values, random)) for n in side})
            yield main.assign({n: main[n].copy(data=_noise(main[n].values, random)) for n in side})


def _shuffled(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return random.permuted(values.reshape(-1)).reshape(values.shape)


def _noise(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Normal numbers, three times as large as the values are; NaN stays."""
    finite = values[np.isfinite(values)]
    size = 3 * float(np.abs(finite).max()) if finite.size else 1.0
    return np.where(np.isnan(values), values, random.normal(0, size or 1.0, values.shape)).astype(values.dtype)
