"""Misprints: is a printed form wrong, or right up to terms that vanish in the limit for which it was derived?

A printed form fails against an exact formula where its claim's evidence is an identity or numbers. Elsewhere both sides have
errors of their own, and a form that a theorem gives to leading order is no misprint because a sharper one exists: then its error
falls as the theorem's small parameter does. The parameter is not known to a machine; so each swept number is tried. A finding is
a printed form whose error against what was measured falls all along an axis, by a power of at least a half, over a factor of at
least four. Such a form is beyond what was printed (``…_beyond``), not a misprint. So is one that passes at an end of an axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.attacks.answer import Finding
from jaxdyn.attacks.case import Case
from jaxdyn.engine.base.failure import let_through
from jaxdyn.engine.judging.check import all_passed
from jaxdyn.engine.judging.resolution import judged

__all__ = ["ask", "power"]

EXACT = ("algebra", "numbers")
POWER = 0.5  # with which an error falls that vanishes in a limit
SPAN = 4.0  # largest over smallest value of an axis on which a power can be told


def ask(case: Case) -> tuple[list[Finding], Any]:
    """A finding where the printed form comes true along a swept field, and what was found or why it was not asked."""
    if case.claim.evidence in EXACT:
        return [], "fails against an exact formula"
    errors = dict(_errors(case.judged_part(case.data)))
    passing = list(_passing(case))
    if not errors:
        return passing, f"not asked: no number is swept over a factor of {SPAN:g}, or nothing that is predicted is measured"
    powers = {axis: power(values, error) for axis, (values, error) in errors.items()}
    found = [
        Finding(
            axis,
            f"the printed form comes true along {axis}: its error falls from {max(e):.3g} to {min(e):.3g}, with the power {p:.2g}",
        )
        for axis, p in powers.items()
        for e in [errors[axis][1]]
        if abs(p) >= POWER
    ]
    return [*found, *passing], {"power of the printed form's error": powers}


def _passing(case: Case) -> Iterator[Finding]:
    """The ends of swept axes at which the printed form passes, and not at all other values."""
    ds = case.main
    for axis in (str(a) for a in ds.status.dims if a != "seed" and a in ds.coords and ds.sizes[a] > 1):
        if ds[axis].dtype.kind not in "fi":
            continue
        passes = {float(value): _passes(case, ds.sel({axis: [value]})) for value in np.sort(ds[axis].values)}
        for end in (min(passes), max(passes)):
            if end > 0 and passes[end] and not all(passes.values()):
                yield Finding(axis, f"the printed form passes at {axis} = {end:g}, all else as in the claim")


def _passes(case: Case, ds: xr.Dataset) -> bool:
    """Whether all checks pass on some of the runs; not if the judge needs more of them."""
    try:
        return all_passed(judged(case.claim.judge, ds, narrowed=True, opponent=True)) is True
    except BaseException as error:
        let_through(error)
        return False


def power(values: np.ndarray, errors: np.ndarray) -> float:
    """The power of a number with which errors fall or rise all along it; 0 if they do not in each step."""
    steps = np.diff(np.log(errors))
    if not (np.isfinite(steps).all() and (np.all(steps < 0) or np.all(steps > 0))):
        return 0.0
    return float((np.log(errors[-1]) - np.log(errors[0])) / (np.log(values[-1]) - np.log(values[0])))


def _errors(ds: xr.Dataset) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """For each swept axis its values in order, and the error at each of them: the largest of all predicted variables."""
    pairs = [
        (ds[n], ds[f"measured_{str(n)[10:]}"])
        for n in ds.data_vars
        if str(n).startswith("predicted_") and f"measured_{str(n)[10:]}" in ds
    ]
    pairs = [(p, m) for p, m in pairs if p.dtype.kind == "f" and {*p.dims} == {*m.dims}]
    for axis in (str(a) for a in ds.status.dims if a != "seed"):
        values = ds[axis].values if axis in ds.coords else np.array([])
        if values.dtype.kind not in "fi" or len(values) < 2 or values.min() <= 0 or values.max() < SPAN * values.min():
            continue
        each = [_relative(p, m, axis) for p, m in pairs if axis in p.dims]
        each = [e for e in each if np.isfinite(e).all() and (e > 0).all()]
        if each:
            order = np.argsort(values)
            yield axis, (values[order].astype(float), np.max(each, axis=0)[order])


def _relative(predicted: xr.DataArray, measured: xr.DataArray, axis: str) -> np.ndarray:
    """The root mean square difference at each value of an axis, relative to that of the measurement."""
    others = [dim for dim in measured.dims if dim != axis]
    share = ((predicted - measured) ** 2).mean(others) / (measured**2).mean(others)
    root: np.ndarray = np.sqrt(np.asarray(share.values, float))
    return root
