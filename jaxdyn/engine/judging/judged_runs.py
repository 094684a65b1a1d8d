"""The runs that a judge gets: those that are ok and inside the assumptions, with the form that is judged."""

from __future__ import annotations

import xarray as xr

from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.contract import Assumption
from jaxdyn.errors import UsageError
from jaxdyn.status import NAMES, OK

__all__ = ["ok_runs", "outside", "select_form", "why_not_judged"]


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
        return f"{len(bad)} of {data.status.size} runs are not ok ({kinds}); {claim.min_ok:.0%} are needed"
    if not bool((ok & ~outside(claim, data)).any()):
        return f"no run lies inside the assumptions ({', '.join(map(str, claim.assumes))})"
    return None


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
