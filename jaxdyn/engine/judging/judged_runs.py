"""The runs that a judge gets, those that are ok and inside the assumptions, and what checks know of them.

NaN in a check means that there is nothing to compare: padding, runs that are not judged, entries that a judge leaves out. While a
judge is asked (:func:`asked`), the functions that make checks know its Dataset, and so two things that numbers do not tell:

- Which runs are *judged*: those that are ok and inside the assumptions. A comparison with NaN is false, and a sum over NaN is zero,
  so a judge's flags and sums have values where there is no judged run; they are left out (:func:`only_judged`).
- Which judged runs are *undefined*: the logarithm of a negative number, or the difference of two infinite ones, is no number. A
  place of a check without any number is undefined if one of its runs has an infinite number, or an observable without any number.
  A check with an undefined place does not pass.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdyn.engine.judging.estimate import coordinates
from jaxdyn.errors import UsageError
from jaxdyn.status import NAMES, OK
from jaxdyn.wording import place, plural

if TYPE_CHECKING:
    import xarray as xr

    from jaxdyn.engine.claims.claim import Claim
    from jaxdyn.engine.claims.contract import Assumption

__all__ = [
    *("asked", "axes_of_settings", "first_place", "ok_runs", "only_judged", "outside", "run_numbers", "select_form"),
    *("undefined_place", "which_judged", "which_undefined", "why_not_judged"),
]

# the runs that a judge gets


def ok_runs(ds: xr.Dataset, left_out: xr.DataArray | None = None) -> xr.Dataset:
    """The data with NaN in every run that is not ok or is left out (outside the assumptions); ``status`` stays."""
    ok = ds.status == OK if left_out is None else (ds.status == OK) & ~left_out
    if bool(ok.all()):
        return ds
    run_dims = set(ds.status.dims)
    masked = {n: v.where(ok) for n, v in ds.data_vars.items() if n != "status" and run_dims <= set(v.dims)}
    return ds.assign(masked)


def outside(claim: Claim, ds: xr.Dataset) -> xr.DataArray:
    """Which runs are ok but do not meet the claim's assumptions."""
    import xarray as xr

    inside = xr.ones_like(ds.status, bool)
    for assumption in claim.assumes:
        values = _assumed(assumption, ds)
        inside = inside & (values > assumption.low) & (values < assumption.high)
    unmet: xr.DataArray = (ds.status == OK) & ~inside
    return unmet


def _assumed(assumption: Assumption, ds: xr.Dataset) -> xr.DataArray:
    name = f"assumed_{assumption.name}"
    if name not in ds:
        there = ", ".join(str(n).removeprefix("assumed_") for n in ds.data_vars if str(n).startswith("assumed_")) or "none"
        raise UsageError(f"the trial gives no assumed {assumption.name!r}; it gives {there}")
    values: xr.DataArray = ds[name]
    return values


def why_not_judged(claim: Claim, data: xr.Dataset) -> str | None:
    """Why the claim cannot be judged: too few runs are ok, or none meets the assumptions; None if it can."""
    ok = data.status == OK
    if float(ok.mean()) < claim.min_ok or not bool(ok.any()):
        bad = data.status.values[data.status.values != OK]
        kinds = ", ".join(sorted({NAMES[int(code)] for code in bad}))
        needed = f"{100 * claim.min_ok:g}% are needed" if bool(ok.any()) else "none is left to judge"
        count = f"{len(bad)} of {plural(data.status.size, 'run')} {'is' if len(bad) == 1 else 'are'} not ok"
        return f"{count} ({kinds}){_first_not_ok(data)}; {needed}{' (min_ok)' if bool(ok.any()) else ''}"
    if not bool((ok & ~outside(claim, data)).any()):
        return f"no run lies inside the assumptions ({', '.join(map(str, claim.assumes))})"
    return None


def _first_not_ok(data: xr.Dataset) -> str:
    """Which run is not ok, or the first of several; and that its prediction is to blame, if what was measured is finite."""
    at = first_place(data.status != OK)
    if not at:
        return ""
    run = data.sel({axis: value for axis, value in at.items() if axis in data.indexes})
    odd = {
        side: [n for n in map(str, run.data_vars) if n.startswith(side) and _odd(run[n])] for side in ("predicted_", "measured_")
    }
    blame = f", where the theory's own {odd['predicted_'][0]} is not finite" if odd["predicted_"] and not odd["measured_"] else ""
    several = "" if int((data.status != OK).sum()) == 1 else "the first "
    return f", {several}at {place(at)}{blame}"


def _odd(values: xr.DataArray) -> bool:
    """Whether numbers are infinite, or all NaN: a single NaN may be padding."""
    return values.dtype.kind in "fc" and (bool(np.isinf(values.values).any()) or bool(np.isnan(values.values).all()))


def select_form(ds: xr.Dataset, form: str | None) -> xr.Dataset:
    """The data with one form of the prediction.

    Raises:
        UsageError: the trial does not predict this form, or it predicts several and none is chosen.
    """
    if "form" not in ds.dims:
        if form is not None:
            raise UsageError(f"the trial predicts no form {form!r}: it has no axis of forms; leave out form=")
        return ds
    if form is None:
        raise UsageError(f"the trial predicts several forms ({', '.join(map(str, ds.form.values))}); the claim must name one")
    if form not in ds.form.values:
        raise UsageError(f"the trial predicts no form {form!r}; it predicts {', '.join(map(str, ds.form.values))}")
    return ds.sel(form=form, drop=True)


# what checks know of them while a judge is asked


class _Asked:
    """A Dataset on which a judge is asked, and what it says of its runs, found out once."""

    def __init__(self, ds: xr.Dataset) -> None:
        self.ds = ds

    @functools.cached_property
    def own(self) -> set[Any]:
        """The axes of observables that are not axes of runs."""
        return {dim for one in self.ds.data_vars.values() for dim in one.dims} - {*self.ds.status.dims}

    @functools.cached_property
    def judged(self) -> xr.DataArray | None:
        """Which runs are judged; None if all are."""
        flags = which_judged(self.ds)
        return None if bool(flags.all()) else flags

    @functools.cached_property
    def undefined(self) -> xr.DataArray | None:
        """Which runs are undefined; None if none is."""
        flags = which_undefined(self.ds)
        return flags if bool(flags.any()) else None


_asked: contextvars.ContextVar[_Asked | None] = contextvars.ContextVar("asked", default=None)


@contextlib.contextmanager
def asked(ds: xr.Dataset) -> Iterator[None]:
    """The Dataset on which a judge is asked inside the ``with`` block."""
    token = _asked.set(_Asked(ds) if "status" in ds else None)
    try:
        yield
    finally:
        _asked.reset(token)


# axes


def axes_of_settings(values: xr.DataArray) -> list[str]:
    """The axes of values that are of settings, in whichever order they come: all but ``seed`` and the runs' own.

    A run's own axes are those of observables. If no judge is asked, they are the axes after ``seed``, as in every Dataset of runs.
    """
    dims, known = [str(dim) for dim in values.dims], _asked.get()
    if known is None:
        return dims[: dims.index("seed")]
    return [dim for dim in dims if dim != "seed" and dim not in known.own]


# judged runs


def which_judged(ds: xr.Dataset) -> xr.DataArray:
    """Which runs are judged: ok, and inside the assumptions, outside of which the quantities assumed are NaN."""
    judged = ds.status == OK
    for name, values in run_numbers(ds):
        if name.startswith("assumed_"):
            judged = judged & ~values.isnull().any([dim for dim in values.dims if dim not in ds.status.dims])
    flags: xr.DataArray = judged.transpose(*ds.status.dims)
    return flags


def run_numbers(ds: xr.Dataset) -> list[tuple[str, xr.DataArray]]:
    """The observables of runs that can be NaN, by name."""
    axes = {*ds.status.dims}
    return [(str(name), values) for name, values in ds.data_vars.items() if values.dtype.kind in "fc" and axes <= {*values.dims}]


def only_judged(values: Any) -> Any:
    """Values with NaN in the places behind which no run is judged; those of ``status`` itself, and plain arrays, as they are."""
    judged = None if (known := _asked.get()) is None else known.judged
    if judged is None or not getattr(values, "dims", ()) or not values.size or values.name == "status":
        return values
    own = [dim for dim in values.dims if dim not in judged.dims]
    there = _at(judged, values.isel(dict.fromkeys(own, 0), drop=True))
    return values if there is None or bool(there.all()) else values.where(there)


# undefined runs


def which_undefined(ds: xr.Dataset) -> xr.DataArray:
    """The judged runs with an infinite number, or with an observable that has no number."""
    import xarray as xr

    axes = ds.status.dims
    odd = xr.zeros_like(ds.status, bool)
    for _, values in run_numbers(ds):
        own = [dim for dim in values.dims if dim not in axes]
        infinite: xr.DataArray = values.copy(data=np.isinf(values.values))
        odd = odd | values.isnull().all(own) | infinite.any(own)
    undefined: xr.DataArray = (which_judged(ds) & odd).transpose(*axes)
    return undefined


def undefined_place(values: Any) -> dict[str, Any] | None:
    """The coordinates of the first undefined place of a check's values; None if there is none."""
    known, array = _asked.get(), np.asarray(values)
    if known is None or array.dtype.kind not in "fc" or not np.isnan(array).any() or (runs := known.undefined) is None:
        return None
    if not hasattr(values, "dims"):  # nothing tells which runs these are
        return {}
    own = [dim for dim in values.dims if dim not in runs.dims]
    empty = values.isnull().all(own) if own else values.isnull()
    there = _at(runs, empty)
    return None if there is None else first_place(empty & there)


def first_place(flags: xr.DataArray) -> dict[str, Any] | None:
    """The coordinates of the first true entry; None if there is none."""
    places = np.argwhere(flags.values)
    if not len(places):
        return None
    return coordinates(flags, places[0])


def _at(runs: xr.DataArray, places: xr.DataArray) -> xr.DataArray | None:
    """Which places have such a run, on the axes of runs that the places have; None if their axes are others."""
    for axis in runs.dims:
        if axis in places.dims:
            if axis in runs.indexes and axis in places.indexes:
                if not places.indexes[axis].isin(runs.indexes[axis]).all():
                    return None
                runs = runs.sel({axis: places.indexes[axis]})
            elif places.sizes[axis] != runs.sizes[axis]:
                return None
        elif axis in places.coords and places[axis].ndim == 0 and places[axis].item() in runs.indexes.get(axis, ()):
            runs = runs.sel({axis: places[axis].item()})
        else:
            runs = runs.any(str(axis))
    aligned: xr.DataArray = runs.transpose(*places.dims).drop_vars(set(runs.coords) - set(places.coords))
    return places.copy(data=aligned.values)
