r"""Scan & Snap: where Theorem 4's law holds in the network's own flow, over eta_Y/eta_Z and the overlap of the classes.

Four classes with one common and one distinct token each, trained by gradient flow on the network's loss in (Y, Z) until
eta_Y t = 1e9. The map shows the law over the measured B at the end (arXiv 2305.16380, Theorem 4, rho = 1/K); the line is where the
argument of its logarithm is 1, the dashed one where the decoder's memory begins to matter, s = 1: it comes first.
"""

import sys
from pathlib import Path

import numpy as np

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.snap.snapping.common_pair_flow import PairFlow, trial

SIZES = {"quick": (9, 6), "paper": (31, 16)}


def rows(ds):
    """The map as a table: for each ratio and odds, B at the end, Theorem 4 over it, and the law with memory over it."""
    end = ds.isel(time=-1)
    for ratio in ds.ratio.values:
        for odds in ds.odds.values:
            run = end.sel(ratio=ratio, odds=odds)
            yield {
                "eta_Y/eta_Z": float(ratio),
                "odds": float(odds),
                "K|E|": float(run.assumed_overlap),
                "argument of the logarithm": float(run.argument),
                "s": float(run.scale),
                "B": float(run.measured_b),
                "Theorem 4 / B": float(run.instant / run.measured_b),
                "law with memory / B": float(run.predicted_b.sel(form="memory") / run.measured_b),
            }


def draw(ds, fig):
    axes = fig.subplots(1, 2, sharey=True)
    end = ds.isel(time=-1)
    laws = {"Theorem 4's law over B": end.instant, "law with memory over B": end.predicted_b.sel(form="memory")}
    for ax, (name, law) in zip(axes, laws.items(), strict=True):
        quotient = (law / end.measured_b).transpose("ratio", "odds")
        image = ax.pcolormesh(ds.odds, ds.ratio, quotient, cmap=plotting.RAMP, norm="log", vmin=0.9, vmax=4.0)
        for values, style in ((end.argument, "-"), (end.scale, "--")):
            ax.contour(ds.odds, ds.ratio, np.log(values.transpose("ratio", "odds")), [0.0], colors="k", linestyles=style)
        ax.set(xscale="log", yscale="log", xlabel="$P_c/P_d$", title=name)
        ax.grid(False)
        fig.colorbar(image, ax=ax)
    axes[0].set_ylabel(r"$\eta_Y/\eta_Z$")


def run(scale: str, out: Path) -> None:
    ratios, overlaps = SIZES[scale]
    grid = jd.grid(PairFlow, ratio=np.geomspace(1e-3, 1e3, ratios), odds=np.geomspace(0.005, 0.1, overlaps))
    ds = experiment.sweep(out, "map", trial, grid, 1).isel(seed=0)
    experiment.table(out, "map", list(rows(ds)), "Theorem 4 in the network's flow, at the end")
    experiment.figure(out, "map", lambda fig: draw(ds, fig), (10.0, 4.0))
    experiment.save(out, "map", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
