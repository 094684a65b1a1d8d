"""Figures of networks trained by GaLore's optimizer."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting


def plot_changes(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the weights' changes, predicted and measured."""
    names = [name for name in ("sgd", "adam", "change") if f"predicted_{name}" in ds]
    axes = np.atleast_1d(fig.subplots(1, len(names)))
    titles = {"sgd": "GaLore-SGD, SGD", "adam": "GaLore-Adam, turned Adam", "change": "changes of the weights"}
    for ax, name in zip(axes, names, strict=True):
        one = ds.isel(seed=slice(0, 8))
        plotting.scatter(ax, one[f"predicted_{name}"], one[f"measured_{name}"], label="changes of the weights", color="measured")
        ax.set(title=titles[name], xlabel="predicted", ylabel="measured")


def plot_noise(ds: xr.Dataset, fig: Figure) -> None:
    """Distance from the target along training, for both kinds of bases."""
    ax = fig.subplots()
    time = np.arange(ds.sizes["time"])
    for finder, color in (("svd", "measured"), ("orthonormal", "third")):
        part = ds.sel(finder=finder)
        part = part.isel(noise=-1) if "noise" in part.dims else part
        label = "singular vectors" if finder == "svd" else "random directions"
        plotting.band(ax, time, part.measured_left.transpose(..., "time"), label, color)
        predicted = part.predicted_left.transpose(..., "time").values.reshape(-1, time.size)[0]
        ax.plot(time, predicted, "--", color=plotting.COLORS["theory"], label="theory" if finder == "svd" else None)
    ax.set(xlabel="sample along training", ylabel=r"$\|w_1 - w^*\|$ over its start")


def plot_rank(ds: xr.Dataset, fig: Figure) -> None:
    """Distance left at the end against the number of rows of noise, a colour for each rank."""
    ax = fig.subplots()
    rows = np.atleast_1d(ds.noisy)
    for rank, color in zip(np.atleast_1d(ds["rank"]), plotting.CYCLE, strict=False):
        part = (ds.sel(rank=rank) if "rank" in ds.dims else ds).isel(time=-1)
        left, law = (
            part[name].transpose(..., "seed").values.reshape(rows.size, -1) for name in ("measured_left", "predicted_left")
        )
        ax.errorbar(rows, left.mean(1), left.std(1), fmt="o", color=color, capsize=3, label=f"rank {rank}")
        ax.plot(rows, law[:, 0], "--", color=color)
    ax.set(xlabel="rows of noise", ylabel=r"$\|w_1 - w^*\|$ over its start", xticks=rows)
