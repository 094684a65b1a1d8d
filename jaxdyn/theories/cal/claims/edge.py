"""Claim on the edge of stability: the sharpness of a trained tanh network settles at 2 over the step size."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.cal.trials.edge import Network, trial

__all__ = ["CLAIMS", "judge", "plot"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Last quarter's sharpness over 2 / step size; gate: it has settled."""
    over_edge = ds.measured_sharpness / ds.predicted_sharpness
    moved = np.abs(ds.measured_sharpness - ds.before) * ds.eta / 2
    return [
        jd.gate("change of the sharpness since the third quarter, over 2 / step size", moved, at_most=0.05),
        jd.mean_within("sharpness in the last quarter over 2 / step size", over_edge, over="seed", low=0.96, high=1.04),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Sharpness in units of the edge along training, a band over seeds for every step size."""
    ax = fig.subplots()
    runs = ds if "eta" in ds.dims else ds.expand_dims("eta")
    colors = ("measured", "third", "fourth", "fifth")
    for i, eta in enumerate(runs.eta.values):
        part = runs.isel(eta=i)
        step = plotting.first_run(part).step.values
        plotting.band(ax, step, part.curve.transpose(..., "sample") * eta / 2, rf"$\eta = {eta:g}$", colors[i % len(colors)])
    ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--", label=r"edge: sharpness $2/\eta$")
    ax.set(xlabel="step", ylabel=r"sharpness $\cdot\,\eta/2$")


study = jd.Study(
    evidence="network",
    assumes=(jd.above("flow_over_edge", 1.0),),
    bounds=jd.looked(at="11000000:11000024", confirmed="15000000:15000024"),
    trial=trial,
    quick=jd.grid(Network, eta=[0.1, 0.2, 0.4]),
    paper=jd.grid(Network, eta=[0.05, 0.1, 0.2, 0.3, 0.4], steps=20000, samples=100, iterations=40),
    seeds=24,
    paper_seeds=64,
    min_ok=0.9,  # a start far sharper than the edge may diverge before it settles
    source="arXiv:2103.00065",
)

CLAIMS = (
    study.claim(
        id="cal.eos_mlp",
        statement=r"Full-batch gradient descent on a tanh network 5-24-24-1 settles at the sharpness $2/\eta$, within 4% on "
        r"average over starts, where the sharpness along gradient flow grows beyond it (target $2(\sin 2x_1 + x_2x_3 + \cos "
        r"x_4)$ on 40 points).",
        judge=judge,
        controls={
            r"$\eta = 0.02$: below the edge": {"eta": 0.02},
        },
        rivals={"the flow's sharpness": jd.swap(predicted_sharpness="flow")},
        plot=plot,
        caption=r"Sharpness in units of the edge, $\lambda_\mathrm{max}\,\eta/2$, along training: median and central 90% of runs "
        "for each step size; dashed: the edge.",
    ),
)
