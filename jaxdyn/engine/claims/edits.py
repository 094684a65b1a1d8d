"""Edits of a Dataset for controls and rivals, and a guard for judges that need some values.

An edit is a function Dataset -> Dataset that returns changed variables and does not modify its argument; a changed variable
keeps its dimensions and their order. ``name=…`` is a variable of the Dataset, such as ``predicted_z`` or ``measured_z``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdyn.errors import Inconclusive, UsageError, shown

if TYPE_CHECKING:
    import xarray as xr

    Edit = Callable[[xr.Dataset], xr.Dataset]
    Replacement = str | float | Callable[[xr.Dataset], xr.DataArray | float]

__all__ = ["Off", "initial", "need", "off", "rolled", "scaled", "swap"]


@dataclasses.dataclass(frozen=True)
class Off:
    """Marks a rival as the theory without its mechanism; made by :func:`off`."""

    rival: Any


def off(rival: Edit | Mapping[str, Any] | None = None, /, **replaced: Replacement) -> Off:
    """The rival with the mechanism switched off, which every claim on a model, a network or a flow needs.

    ``jd.off(predicted_z="initial_z")`` replaces predictions as :func:`swap` does; ``jd.off(jd.initial("record", "predicted_z"))``
    takes any edit; ``jd.off({"gain in accuracy": 0.0})`` gives the value of a check without the mechanism.

    Raises:
        UsageError: both an edit and replacements are given, or neither.
    """
    if (rival is None) == (not replaced):
        raise UsageError("jd.off(...) takes one rival, or the predictions that it replaces, as in jd.off(predicted_z=0.0)")
    return Off(swap(**replaced) if rival is None else rival)


def swap(**replaced: Replacement) -> Edit:
    """An edit that replaces variables: by another variable, by a number, or by the result of a function of the Dataset.

    ``jd.swap(predicted_z="instant")``, ``jd.swap(predicted_z=0.0)``, or
    ``jd.swap(predicted_z=lambda ds: ds.predicted_z.isel(alpha=0))``. A replacement is broadcast to the axes of the variable
    and takes their order; an array keeps its dtype, a number takes the variable's if that can represent it. All replacements are
    read from the Dataset before the edit.

    Raises:
        UsageError: when the edit is applied: a replacement has an axis that the variable lacks, or other values on an axis.
    """

    def edit(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({name: _like(ds[name], _value(ds, by)) for name, by in replaced.items()})

    return edit


def initial(axis: str, /, *names: str, **replaced: Replacement) -> Edit:
    """An edit in which nothing moves: each named variable keeps its first value along ``axis``.

    ``jd.initial("record", "predicted_z")``

    Other variables can be replaced in the same edit, as in :func:`swap`:
    ``jd.initial("record", "predicted_z", predicted_end="start", predicted_rate=0.0)``.

    Raises:
        UsageError: when the edit is applied: a named variable lacks the axis, or as for :func:`swap`.
    """

    def first(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
        def value(ds: xr.Dataset) -> xr.DataArray:
            if axis not in ds[name].dims:
                raise UsageError(f"{name} has no axis {axis} along which to keep its first value; {_axes(ds[name])}")
            return ds[name].isel({axis: 0})

        return value

    return swap(**{name: first(name) for name in names}, **replaced)


def scaled(**factors: float | str) -> Edit:
    """An edit that multiplies variables by a number or by another variable: ``jd.scaled(predicted_u=1.05)``."""

    def edit(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign(
            {name: _like(ds[name], _wide(ds[name]) * (ds[f] if isinstance(f, str) else f)) for name, f in factors.items()}
        )

    return edit


def rolled(**axes: str) -> Edit:
    """An edit that shifts variables by one place along an axis, cyclically: ``jd.rolled(predicted_z="token")``."""

    def edit(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({name: ds[name].roll({axis: 1}, roll_coords=False) for name, axis in axes.items()})

    return edit


def _value(ds: xr.Dataset, by: Replacement) -> xr.DataArray | float:
    """The values that replace a variable, before they are broadcast."""
    if isinstance(by, str):
        return ds[by]
    return by(ds) if callable(by) else by


def _like(pattern: xr.DataArray, values: xr.DataArray | float) -> xr.DataArray:
    """The values broadcast to the pattern's dimensions, in its order."""
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
    """The variable's dtype if it can represent the number (up to rounding, for floating point); else one for both."""
    wider: np.dtype[Any] = np.result_type(pattern.dtype, np.asarray(value).dtype)
    if np.iscomplexobj(value):
        return wider
    with np.errstate(all="ignore"):
        held = np.asarray(value).astype(pattern.dtype)
        same = np.isfinite(held) == np.isfinite(value) if pattern.dtype.kind == "f" else held == value
    return pattern.dtype if same else wider


def _wide(values: xr.DataArray) -> xr.DataArray:
    """Short whole numbers as 64-bit ones, so that products do not wrap; other values unchanged."""
    return values.astype(np.int64) if values.dtype.kind in "biu" and values.dtype.itemsize < 8 else values


def _axes(array: xr.DataArray) -> str:
    return f"it has {', '.join(map(str, array.dims)) or 'no axes'}"


def need(ds: xr.Dataset, **axes: int | Sequence[float | str]) -> None:
    """Refuse to decide on too few data: ``jd.need(ds, seed=8)`` or, for particular values, ``jd.need(ds, decay=(0.0,))``.

    Raises:
        Inconclusive: an axis has fewer values than needed, or lacks one of them; the message names it.
        UsageError: what is needed is neither a number of values nor a list of them.
    """
    for axis, wanted in axes.items():
        wanted = wanted.tolist() if isinstance(wanted, np.ndarray | np.generic) else wanted
        if isinstance(wanted, bool | str) or not isinstance(wanted, int | Sequence):
            raise UsageError(
                f"need({axis}={shown(wanted)}) is not allowed: it is a number of values, or a tuple of them: {axis}=(…,)"
            )
        if isinstance(wanted, int):
            count = ds.sizes.get(axis, 1 if axis in ds.coords else 0)
            if count < wanted:
                raise Inconclusive(f"at least {wanted} values of {axis} are needed, got {count}")
            continue
        there = np.atleast_1d(ds[axis].values).tolist() if axis in ds.coords else []
        missing = [str(value) for value in wanted if value not in there]
        if missing:
            raise Inconclusive(f"{axis} = {', '.join(missing)} is needed, got {', '.join(map(str, there)) or 'no such axis'}")
