"""Runs made by hand, for judges and verdicts."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.status import DIVERGED, OK


def data(error=0.0, *, lr=(0.1, 0.2), seeds=4, status=None, prediction=2.0, forms=None, dtype=float):
    """Runs in which the measurement is the prediction times 1 + error."""
    shape = (len(lr), seeds, 3)
    predicted = np.full(shape, prediction, dtype)
    measured = predicted * np.broadcast_to(1 + np.asarray(error), shape)
    dims = ("lr", "seed", "entry")
    ds = xr.Dataset(
        {"predicted_z": (dims, predicted), "measured_z": (dims, measured)}, coords={"lr": list(lr), "seed": range(seeds)}
    )
    if forms is not None:
        ds = ds.assign(predicted_z=ds.predicted_z * xr.DataArray(list(forms.values()), dims="form", coords={"form": list(forms)}))
    return ds.assign(status=(("lr", "seed"), np.full(shape[:2], OK) if status is None else np.asarray(status)))


def judge(ds):
    return [jd.at_most("relative error", jd.relative_error(ds, "z", "entry"), 0.01)]


def reading(ds):
    """What a measured claim reads: the mean over seeds of measured over predicted."""
    return [jd.mean_reading("ratio", (ds.measured_z / ds.predicted_z).mean("entry"), over=["lr", "seed"])]


def doubled(ds):
    return ds.assign(predicted_z=2 * ds.predicted_z)


def failing(share, code=DIVERGED):
    """The status of 2 x 4 runs of which this many are not ok."""
    flat = np.full(8, OK)
    flat[:share] = code
    return flat.reshape(2, 4)
