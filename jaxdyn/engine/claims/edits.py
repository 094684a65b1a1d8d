"""Edits of a Dataset for controls and rivals, and what a judge needs to decide.

An edit is a function Dataset -> Dataset that changes some variables and leaves the Dataset it is given alone; a changed variable
keeps its dimensions and their order. ``name=…`` is a variable of the Dataset, such as ``predicted_z`` or ``measured_z``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdyn.errors import Inconclusive, UsageError

if TYPE_CHECKING:
    import xarray as xr

    Edit = Callable[[xr.Dataset], xr.Dataset]
    Replacement = str | float | Callable[[xr.Dataset], xr.DataArray | float]

__all__ = ["Off", "initial", "need", "off", "rolled", "scaled", "swap"]


@dataclasses.dataclass(frozen=True)
class Off:
    """A rival: the theory without its mechanism; ``rival`` is what a rival may be."""

    rival: Any


def off(rival: Edit | Mapping[str, Any] | None = None, /, **replaced: Replacement) -> Off:
    """The mechanism switched off: the rival that every claim on a model, a network or a flow has.

    ``jd.off(predicted_z="initial_z")`` replaces predictions as :func:`swap` does; ``jd.off(jd.initial("record", "predicted_z"))``
    takes any edit; ``jd.off({"gain in accuracy": 0.0})`` says what a check would find without the mechanism.

    Raises:
        UsageError: both an edit and replacements, or neither.
    """
    if (rival is None) == (not replaced):
        raise UsageError("jd.off(...) takes one rival, or the predictions that it replaces, as in jd.off(predicted_z=0.0)")
    return Off(swap(**replaced) if rival is None else rival)


def swap(**replaced: Replacement) -> Edit:
    """Replace variables: by another variable, by a number, or by what a function makes of the Dataset.

    ``jd.swap(predicted_z="instant")``, ``jd.swap(predicted_z=0.0)``, or
    ``jd.swap(predicted_z=lambda ds: ds.predicted_z.isel(alpha=0))``. What replaces a variable is spread over the axes it lacks and
    brought into the variable's order of axes; an array keeps its dtype, a number takes the variable's if that holds it. All
    replacements are read from the Dataset as it was before the edit.

    Raises:
        UsageError: when the edit is made: what replaces a variable has an axis that the variable lacks, or other values on an axis.
    """

    def edit(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({name: _like(ds[name], _value(ds, by)) for name, by in replaced.items()})

    return edit


def initial(axis: str, /, *names: str, **replaced: Replacement) -> Edit:
    """Nothing moves: each named variable keeps its first value along ``axis``: ``jd.initial("record", "predicted_z")``.

    Other variables can be replaced in the same edit, as by :func:`swap`:
    ``jd.initial("record", "predicted_z", predicted_end="start", predicted_rate=0.0)``.

    Raises:
        UsageError: when the edit is made: a named variable has no such axis, or as for :func:`swap`.
    """

    def first(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
        def value(ds: xr.Dataset) -> xr.DataArray:
            if axis not in ds[name].dims:
                raise UsageError(f"{name} has no axis {axis} along which to keep its first value; {_axes(ds[name])}")
            return ds[name].isel({axis: 0})

        return value

    return swap(**{name: first(name) for name in names}, **replaced)


def scaled(**factors: float | str) -> Edit:
    """A variable times a number, or times another variable: ``jd.scaled(predicted_u=1.05)``."""

    def edit(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign(
            {name: _like(ds[name], _wide(ds[name]) * (ds[f] if isinstance(f, str) else f)) for name, f in factors.items()}
        )

    return edit


def rolled(**axes: str) -> Edit:
    """A variable moved by one place along an axis, cyclically: ``jd.rolled(predicted_z="token")``."""

    def edit(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({name: ds[name].roll({axis: 1}, roll_coords=False) for name, axis in axes.items()})

    return edit


def _value(ds: xr.Dataset, by: Replacement) -> xr.DataArray | float:
    """What replaces a variable, in its own shape."""
    if isinstance(by, str):
        return ds[by]
    return by(ds) if callable(by) else by


def _like(pattern: xr.DataArray, values: xr.DataArray | float) -> xr.DataArray:
    """The values with the dimensions of the pattern, in its order."""
    import xarray as xr

    if not isinstance(values, xr.DataArray):
        if np.ndim(values) > 0:
            raise UsageError(f"{pattern.name} is replaced by an array without named axes: return a DataArray or a number")
        filled: xr.DataArray = xr.full_like(pattern, values, dtype=_dtype(pattern, values))
        return filled
    for axis in values.dims:
        if axis not in pattern.dims:
            raise UsageError(f"{pattern.name} is replaced by values with an axis {axis}, which it lacks; {_axes(pattern)}")
        old, new = pattern.indexes.get(axis), values.indexes.get(axis)
        differ = old is not None and new is not None and not new.equals(old)
        if differ or values.sizes[axis] != pattern.sizes[axis]:
            raise UsageError(f"{pattern.name} is replaced by values at other places of the axis {axis}")
    return values.broadcast_like(pattern).transpose(*pattern.dims)


def _dtype(pattern: xr.DataArray, value: float) -> np.dtype[Any]:
    """The variable's dtype where it holds the number, to rounding if it holds fractions; else one that holds both."""
    wider: np.dtype[Any] = np.result_type(pattern.dtype, np.asarray(value).dtype)
    if np.iscomplexobj(value):
        return wider
    with np.errstate(all="ignore"):
        held = np.asarray(value).astype(pattern.dtype)
        same = np.isfinite(held) == np.isfinite(value) if pattern.dtype.kind == "f" else held == value
    return pattern.dtype if same else wider


def _wide(values: xr.DataArray) -> xr.DataArray:
    """Short whole numbers as long ones, in which products do not wrap."""
    return values.astype(np.int64) if values.dtype.kind in "biu" and values.dtype.itemsize < 8 else values


def _axes(array: xr.DataArray) -> str:
    return f"it has {', '.join(map(str, array.dims)) or 'no axes'}"


def need(ds: xr.Dataset, **axes: int | Sequence[float | str]) -> None:
    """Refuse to decide on too few data: ``jd.need(ds, seed=8)`` or, for values that must be there, ``jd.need(ds, decay=(0.0,))``.

    Raises:
        Inconclusive: an axis with fewer values than its number, or without one of its values; the message names them.
    """
    for axis, wanted in axes.items():
        if not isinstance(wanted, Sequence):
            count = ds.sizes.get(axis, 1 if axis in ds.coords else 0)
            if count < wanted:
                raise Inconclusive(f"at least {wanted} values of {axis} are needed, got {count}")
            continue
        there = np.atleast_1d(ds[axis].values).tolist() if axis in ds.coords else []
        missing = [str(value) for value in wanted if value not in there]
        if missing:
            raise Inconclusive(f"{axis} = {', '.join(missing)} is needed, got {', '.join(map(str, there)) or 'no such axis'}")
