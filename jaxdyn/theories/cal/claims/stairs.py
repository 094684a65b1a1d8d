"""Claim on incremental learning: from a small start the singular values of the target are learned one after another."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cal.trials.stairs import Stairs, trial

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Times of appearance within 1%, in the predicted order, and the rank on every plateau between them."""
    gaps = np.diff(ds.measured_time, axis=ds.measured_time.get_axis_num("mode"))
    wrong = (ds.measured_rank != ds.predicted_rank).where(ds.measured_rank.notnull())
    return [
        jd.at_most("relative error of the times", jd.relative_error(ds, "time"), 0.01),
        jd.at_least("smallest gap between successive modes", float(np.nanmin(gaps)), 0.0),
        jd.at_most("plateaus of another rank", wrong.sum(skipna=True), 0),
    ]


def at_once(ds: xr.Dataset) -> xr.Dataset:
    """A rival: all singular values appear at one time, the mean of the predicted ones, and there is no plateau between them."""
    time, rank = ds.predicted_time, ds.predicted_rank
    full = rank.where(rank == rank.min("plateau"), rank.max("plateau"))
    return ds.assign(predicted_time=time.mean("mode").broadcast_like(time), predicted_rank=full)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Singular values of one run with the predicted times; measured against predicted times of all runs."""
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    run = ds.isel({d: -1 for d in ds.status.dims})  # the last cell: a start in random directions
    plotting.lines(left, run.t.values, run.learned.transpose("mode", "step").values)
    for time in run.predicted_time.values:
        left.axvline(time, color=plotting.COLORS["theory"], linestyle="--", linewidth=1)
    left.set(xlabel="time", ylabel="singular values of the map, one run")
    plotting.scatter(right, ds.predicted_time, ds.measured_time, "time to reach half", log=False)


study = jd.Study(
    evidence="flow",
    bounds=jd.looked(at="0:8", confirmed="4000:4008"),
    trial=trial,
    quick=jd.grid(Stairs, eps=1e-6, start=["aligned", "frames"]),
    paper=jd.grid(Stairs, eps=[1e-10, 1e-8, 1e-6], start=["aligned", "frames"], size=10, modes=4),
    seeds=8,
    paper_seeds=64,
    source="arXiv:1312.6120, time to learn a mode; overlap of random directions derived here",
)

CLAIMS = (
    study.claim(
        id="cal.staircase",
        statement=r"From a small balanced start, gradient flow of a two-layer linear network learns the singular values of its "
        r"target one after another, mode $i$ at $t_i \approx \ln(s_i/\varepsilon_i)/(2s_i)$, to 1% at $\varepsilon = 10^{-6}$; "
        r"$\varepsilon_i = \varepsilon$ for an aligned start, else what no earlier mode takes of the start along mode $i$.",
        judge=judge,
        controls={r"$\varepsilon = 0.5$: no staircase": {"eps": 0.5}},
        rivals={"all modes at once": at_once},
        plot=plot,
        caption="Left: singular values of the network's map along one run (lines) and the predicted times of appearance (dashed). "
        "Right: measured against predicted time at which a mode reaches half its value, one point per mode and run.",
    ),
)
