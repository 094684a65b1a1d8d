"""A slide's formula next to a claim's prediction: evaluated on a few runs of the claim, where the two have to be equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.grid import Grid
from jaxdyn.engine.runs.sweep import sweep
from jaxdyn.report.talks.rows import Formula

__all__ = ["EQUAL", "difference", "runs"]

EQUAL = 1e-6  # relative difference of a formula and the prediction
VALUES, SEEDS = 2, 2  # of every axis, that are run
FUNCTIONS = ("abs", "cos", "cosh", "cumsum", "exp", "expm1", "log", "log1p", "maximum", "minimum", "pi", "sign", "sin", "sinh")
MORE = ("sqrt", "tan", "tanh", "where")


def runs(claim: Claim) -> xr.Dataset:
    """A few runs of a claim: the first values of each axis of its quick grid."""
    few = Grid(claim.quick.base, {name: values[:VALUES] for name, values in claim.quick.axes.items()})
    return sweep(claim.trial, few, SEEDS)


def difference(formula: Formula, ds: xr.Dataset, setting: Any) -> float:
    """The largest difference between the formula and the claim's prediction, in units of the largest predicted number.

    Args:
        formula: the slide's.
        ds: some runs of its claim (:func:`runs`).
        setting: whose fields the formula may name, where the runs do not vary them.

    Raises:
        ValueError: the formula names something that is neither, or its prediction is not there or is nowhere a number.
    """
    if formula.equals not in ds:
        raise ValueError(f"{formula.claim} has no variable {formula.equals!r}: it has {', '.join(map(str, ds.data_vars))}")
    predicted = ds[formula.equals]
    try:
        ours = eval(formula.expression, {"__builtins__": {}}, _names(ds, setting))
    except NameError as error:
        raise ValueError(f"{formula.claim}: {error}") from None
    apart, size = abs(ours - predicted), float(abs(predicted).max())
    if not size > 0:
        raise ValueError(f"{formula.claim}: {formula.equals} is 0 or no number everywhere: nothing is compared")
    if bool((np.isfinite(predicted) & ~np.isfinite(apart)).any()):
        return float("inf")
    return float(apart.max()) / size


def _names(ds: xr.Dataset, setting: Any) -> Mapping[str, Any]:
    fields = {field.name: getattr(setting, field.name) for field in dataclasses.fields(setting)}
    variables = {str(name): ds[name] for name in (*ds.data_vars, *ds.coords)}
    return {name: getattr(np, name) for name in (*FUNCTIONS, *MORE)} | fields | variables
