"""A vocabulary for judges and controls: breaches of one variable of the data, and what a judge needs to decide.

A breach is a function Dataset -> Dataset; the variable keeps its dimensions. ``name=…`` is a variable of the Dataset, such as
``predicted_z`` or ``measured_z``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxdyn.errors import Inconclusive

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["need", "rolled", "scaled", "swap"]


def swap(**replaced: str | float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A variable's values are those of another variable, or one number: ``jd.swap(predicted_z="instant")``."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign(
            {name: _like(ds[name], ds[other] if isinstance(other, str) else other) for name, other in replaced.items()}
        )

    return breach


def scaled(**factors: float | str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A variable times a number, or times another variable: ``jd.scaled(predicted_u=1.05)``."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({name: _like(ds[name], ds[name] * (ds[f] if isinstance(f, str) else f)) for name, f in factors.items()})

    return breach


def rolled(**axes: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A variable moved by one place along an axis, cyclically: ``jd.rolled(predicted_z="token")``."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({name: ds[name].roll({axis: 1}, roll_coords=False) for name, axis in axes.items()})

    return breach


def _like(pattern: xr.DataArray, values: xr.DataArray | float) -> xr.DataArray:
    """The values with the dimensions of the pattern, in its order."""
    import xarray as xr

    if not isinstance(values, xr.DataArray):
        return xr.full_like(pattern, values)
    return values.broadcast_like(pattern).transpose(*pattern.dims)


def need(ds: xr.Dataset, **axes: int | Sequence[float | str]) -> None:
    """Refuse to decide on too few data: ``jd.need(ds, seed=8)`` or, for values that must be there, ``jd.need(ds, decay=(0.0,))``.

    Raises:
        Inconclusive: an axis with fewer values than its number, or without one of its values; the message names them.
    """
    for axis, wanted in axes.items():
        if isinstance(wanted, int):
            count = ds.sizes.get(axis, 1 if axis in ds.coords else 0)
            if count < wanted:
                raise Inconclusive(f"at least {wanted} values of {axis} are needed, got {count}")
            continue
        there = np.atleast_1d(ds[axis].values).tolist() if axis in ds.coords else []
        missing = [str(value) for value in wanted if value not in there]
        if missing:
            raise Inconclusive(f"{axis} = {', '.join(missing)} is needed, got {', '.join(map(str, there)) or 'no such axis'}")
