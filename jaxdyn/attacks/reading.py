"""What a check reads: does it react when measured values are replaced, can data make it fail, and do the records cut them off?

A form that is refuted would be upheld if it were true: where what it predicts was measured.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.attacks.answer import Answer, Finding, answered
from jaxdyn.attacks.case import Attack, Case
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.judging.check import Check, Reading
from jaxdyn.errors import Inconclusive
from jaxdyn.wording import plural

__all__ = ["READING", "same_number", "exchanged_data"]

SAME = 1e-9  # relative difference between equal values
CUT = 0.1  # share of the runs whose event lies on the first or the last record, from which on it says more of the records
LEAST = 4  # records on an axis of times
TIMES = re.compile(
    r"(?:^|_)(?:records?|steps?|times?|epochs?|saves?|ends?|delays?|t|when)(?:$|_)"
)  # in names of axes and of what is measured


def ask(case: Case) -> Answer:
    """Which checks read no data, which pass whatever the data are, and which times are cut off."""
    reacted: set[str] = set()
    failed: set[str] = set()
    asked = 0
    for _, ds in exchanged_data(case.main):
        asked += 1
        found = _answers(case, ds)
        if found is None:  # the judge does not take these data, which is a reaction of all checks
            reacted |= case.own.keys()
            continue
        for name, own in case.own.items():
            other = found.get(name)
            if other is None or not same_number(own.value, other.value):
                reacted.add(name)
            if other is None or isinstance(other, Check) and other.passed is not True:
                failed.add(name)
    blind = [name for name in case.own if name not in reacted]
    certain = [name for name, own in case.own.items() if name in reacted and isinstance(own, Check) and name not in failed]
    cut = dict(_cut(case))
    findings = [Finding(name, f"{name!r} is the same number whatever is measured: it reads no data") for name in blind]
    findings += [Finding(name, f"{name!r} passes whatever is measured: no data make it fail") for name in certain]
    findings += [Finding(name, text) for name, text in cut.items()]
    findings += _never_true(case)
    detail = f"{plural(len(case.own), 'check')} asked with measured values replaced in {asked} ways"
    return answered(detail, findings, **{"read no data": blind, "cannot fail": certain, "cut off by the records": sorted(cut)})


def _reads(case: Case, edited: xr.Dataset) -> bool:
    """Whether some answer is another one on edited data, or the judge does not take them."""
    found = _answers(case, edited)
    return found is None or any(
        name not in found or not same_number(own.value, found[name].value) for name, own in case.own.items()
    )


def _never_true(case: Case) -> Iterator[Finding]:
    """A refuted form that is refuted of its own prediction, too; only what is predicted with the axes that it is measured on."""
    if case.claim.expected != "refuted":
        return
    ds = case.main
    names = [str(n)[10:] for n in ds.data_vars if str(n).startswith("predicted_")]
    pairs = {name: (ds[f"predicted_{name}"], ds[f"measured_{name}"]) for name in names if f"measured_{name}" in ds}
    if not pairs or any({*p.dims} != {*m.dims} for p, m in pairs.values()):
        return
    true = {f"measured_{name}": p.transpose(*m.dims).astype(m.dtype) for name, (p, m) in pairs.items()}
    found = _answers(case, ds.assign(true)) or {}
    if failing := [str(c) for c in found.values() if isinstance(c, Check) and c.passed is False]:
        text = "; ".join(failing)
        yield Finding(
            "form", f"it is refuted where its own prediction is what was measured, so that it could never be upheld: {text}"
        )


def _answers(case: Case, ds: xr.Dataset) -> dict[str, Check | Reading] | None:
    """The judge's answers on other data, by name; None if it gives none."""
    try:
        return {a.name: a for a in case.answers(ds)}
    except Inconclusive:
        return None
    except BaseException as error:
        let_through(error)
        return None


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are the same, undefined ones among them."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or abs(one - other) <= SAME * max(abs(one), abs(other))


def exchanged_data(ds: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """The data with measured and recorded values exchanged among runs, cells and their own axes, or replaced."""
    runs = [str(axis) for axis in ds.status.dims]
    for axis in (axis for axis in runs if ds.sizes[axis] > 1):
        yield f"exchanged among {axis}", _with(ds, functools.partial(_rolled, axis=axis))
    own = {str(axis) for v in _observed_values(ds).values() for axis in v.dims if axis not in runs and v.sizes[axis] > 1}
    for axis in sorted(own):
        yield f"exchanged along {axis}", _with(ds, functools.partial(_rolled, axis=axis))
    rng = np.random.default_rng(0)
    yield "replaced by their mean", _with(ds, lambda v: xr.full_like(v, 1) * v.mean())
    yield "multiplied by a hundred", _with(ds, lambda v: v * 100)
    yield "replaced by zero", _with(ds, lambda v: v * 0)
    yield "with the other sign", _with(ds, lambda v: -v)
    yield "shuffled", _with(ds, lambda v: v.copy(data=rng.permutation(v.values.ravel()).reshape(v.shape)))
    yield "replaced by a million", _with(ds, lambda v: v * 0 + 1e6)
    yield "replaced by numbers of size one", _with(ds, lambda v: v * 0 + rng.normal(size=v.shape))
    yield "replaced by noise", _with(ds, lambda v: v * 0 + rng.normal(size=v.shape) * float(np.sqrt((v**2).mean()) or 1))


def _observed_values(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measured and recorded floating-point values."""
    names = [str(n) for n in ds.data_vars if not str(n).startswith(("predicted_", "assumed_")) and n != "status"]
    return {name: ds[name] for name in names if ds[name].dtype.kind in "fiub"}


def _with(ds: xr.Dataset, edit: Callable[[xr.DataArray], xr.DataArray]) -> xr.Dataset:
    """The data with all measured and recorded values edited; truth values stay such."""
    changed = {}
    with np.errstate(all="ignore"):
        for name, values in _observed_values(ds).items():
            wide = values.astype(float) if values.dtype.kind in "iub" else values
            changed[name] = edit(wide) > 0.5 if values.dtype.kind == "b" else edit(wide).astype(wide.dtype)
    return ds.assign(changed)


def _rolled(values: xr.DataArray, axis: str) -> xr.DataArray:
    if axis not in values.dims:
        return values
    return values.roll({axis: max(1, values.sizes[axis] // 2)}, roll_coords=False)


def _cut(case: Case) -> Iterator[tuple[str, str]]:
    """Times of events that lie on the first or the last record, or beyond, in many runs, if the judge reads them."""
    ds = case.main
    axes = [
        axis for axis in ds.coords if axis not in ds.status.dims and ds[axis].dtype.kind in "iuf" and ds.sizes.get(axis, 0) >= LEAST
    ]
    for name, values in _observed_values(ds).items():
        found = values.values[np.isfinite(values.values)] if values.dtype.kind == "f" else values.values.ravel()
        for axis in (axis for axis in axes if axis not in values.dims and (TIMES.search(str(axis)) or TIMES.search(name))):
            times: Any = ds[axis].values.astype(float)
            within = found[found < times[-1]]
            if len(np.unique(found)) < 2 or not len(within) or not np.isin(within, times).all():
                continue
            early, late = float((found <= times[1]).mean()), 1 - len(within) / len(found)
            lost = ds.assign({name: values * np.nan})
            if max(early, late) < CUT or case.reaction(lost) == "passes" or not _reads(case, lost):
                continue
            which, share = ("last", late) if late >= early else ("first", early)
            yield (
                name,
                f"{name} lies on the {which} record of {axis}, or beyond, in {share:.0%} of the runs: the records cut it off",
            )


READING = Attack("data read", "Does every check react to the data, and can data make it fail?", ask)
