"""JoMA, Figure 3: stable rank of V and dV/dt while softmax attention and the MLP are trained together.

The run of Figure 2 (twenty classes, one sample each), with attention that learns and with attention frozen, next to the
theory's dynamics from the first step. Paper: arXiv 2310.00535; for gaussian data its stable rank of V ends at 1.2 or below.
"""

import sys
from pathlib import Path

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.invariant.classes import Classes
from jaxdyn.theories.joma.invariant.fig3 import fig3_plot, fig3_trial

SEEDS = {"quick": 8, "paper": 64}
PAPER = {("gaussian", 1.0): f"<= {published.FIG3_STABLE_RANK}"}


def rows(ds):
    """Mean and standard deviation over seeds at the last step, for each kind of data and each rate of attention."""
    for kind in ds.data.values:
        for ratio in ds.ratio.values:
            end = ds.sel(data=kind, ratio=ratio).isel(record=-1)
            yield {
                "data": str(kind),
                "attention": "learns" if ratio else "frozen",
                "V": float(end.measured_srank_v.mean()),
                "sd": experiment.deviation(end.measured_srank_v),
                "paper V": PAPER.get((str(kind), float(ratio))),
                "theory V": float(end.predicted_srank_v.mean()),
                "dV/dt": float(end.measured_srank_rate.mean()),
                "theory dV/dt": float(end.predicted_srank_rate.mean()),
            }


def run(scale: str, out: Path) -> None:
    grid = jd.grid(Classes, data=["gaussian", "random"], ratio=[1.0, 0.0])
    ds = experiment.sweep(out, "runs", fig3_trial, grid, SEEDS[scale])
    experiment.table(out, "final", list(rows(ds)), f"Stable rank of V and dV/dt at the last step, {ds.sizes['seed']} seeds")
    experiment.figure(out, "fig3", lambda fig: fig3_plot(ds.sel(ratio=1.0), fig))
    experiment.save(out, "fig3", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
