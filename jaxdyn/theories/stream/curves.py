"""Perplexity over the position in a text: ratios of policies, slopes, and their figure."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting
from jaxdyn.theories.sink.language import EDGES

SHOWN = {"dense": "control", "window": "theory", "replaced": "third", "1 sink": "measured"}
LATE = slice(2, None)  # stretches: the first two lengths of training are left out
SHARES = xr.DataArray(np.diff(EDGES)[LATE] / (EDGES[-1] - EDGES[2]), dims="stretch")


def ratio(ds: xr.Dataset, policy: str, against: str) -> xr.DataArray:
    """Perplexity with one policy over that with another, on the same texts from two lengths of training on."""
    whole = (ds.measured_lacks.isel(stretch=LATE) * SHARES).sum("stretch", skipna=False)
    return np.exp(whole.sel(policy=policy, drop=True) - whole.sel(policy=against, drop=True))


def slope(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Slope of the logarithm of the perplexity in the logarithm of the position, a decade, by least squares."""
    y = ds.measured_lacks.sel(policy=policy, drop=True).isel(stretch=LATE)
    x = np.log10(ds.place.isel(stretch=LATE))
    x = x - x.mean("stretch")
    return (x * y).sum("stretch", skipna=False) / (x**2).sum("stretch")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position in the text, by policy; and the ratio of window and one sink over the weight of the sink."""
    left, right = fig.subplots(1, 2)
    runs = ds.isel({name: 0 for name in ("decay", "cut") if name in ds.dims}, drop=True)
    x = runs.place.values.reshape(-1, ds.sizes["stretch"])[0]
    for policy, color in SHOWN.items():
        y = np.exp(runs.measured_lacks.sel(policy=policy) + runs.entropy).transpose(..., "stretch")
        plotting.band(left, x, y, policy, plotting.COLORS[color])
    left.set(xscale="log", yscale="log", xlabel="position in the text", ylabel="perplexity")
    plotting.scatter(right, ds.idle, ratio(ds, "window", "1 sink"), label="runs", color="measured", log=False)
    right.set(xlabel="weight on token 0, idle", ylabel="perplexity, 0 + L over 1 + (L - 1)")
