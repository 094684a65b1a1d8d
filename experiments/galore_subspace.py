"""GaLore, why subspaces are switched: gradient norm and rank of the update for periods T, and for a first subspace that is kept.

Quadratic problems of 10 x 10 weights, one-sided subspaces of 4 dimensions, no moments; 128 problems. Paper: arXiv 2403.03507,
section 4.1.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.galore.descent import Switching, switching_trial

TALKS = ("practical:galore-period",)

PERIODS = {"quick": [0.0, 5.0, 20.0, 100.0], "paper": [0.0, 1.0, 5.0, 20.0, 100.0, 500.0]}
COLORS = ("control", "measured", "third", "fourth", "fifth", "theory")


def draw(ds: xr.Dataset, total: int, fig: Figure) -> None:
    """Norms of the gradient and ranks of the update over steps, a band over problems for each period."""
    left, right = fig.subplots(1, 2)
    steps = np.arange(ds.sizes["time"]) * (total // 60)
    for t, color in zip(ds.every.values, COLORS, strict=False):
        part, label = ds.sel(every=t), "first subspace kept" if t == 0 else f"T = {t:g}"
        plotting.band(left, steps, part.norms.transpose(..., "time"), label, color)
        plotting.band(right, steps, part.measured_rank.transpose(..., "time"), label, color)
    left.set(yscale="log", xlabel="step", ylabel="gradient over that at the start")
    right.set(xlabel="step", ylabel=r"rank of $W_t - W_0$")


def run(scale: str, out: Path) -> None:
    """Sweep, print the ends, draw the curves."""
    grid = jd.grid(Switching, every=PERIODS[scale], steps=600 if scale == "quick" else 3000)
    ds = experiment.sweep(out, "switching", switching_trial, grid, 128)
    lines = [
        {
            "T": "never" if t == 0 else f"{t:g}",
            "gradient at the end": float(np.median(ds.measured_end.sel(every=t))),
            "rank of the update": float(np.median(ds.measured_rank.sel(every=t).isel(time=-1))),
        }
        for t in ds.every.values
    ]
    experiment.table(out, "subspace", lines, "Medians over 128 problems; the gradient over that at the start")
    experiment.figure(out, "subspace", lambda fig: draw(ds, grid.base.steps, fig), (9, 3.6))
    experiment.save(out, "subspace", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
