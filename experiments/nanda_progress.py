"""Progress measures of grokking in a one-layer transformer: losses, Gini coefficient, squared weights, published phases.

Quick scale: the claims' own (p = 53, width 32, half of the pairs, 1200 epochs). Paper scale: p = 113, width 128, 4 heads, 512
units, 30% of the pairs, rate 1e-3, decay 1, 40 000 epochs; a stopped study resumes with the first seed that is not done.
Paper: arXiv 2301.05217.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.nanda.progress import STUDY, Training, times
from jaxdyn.theories.nanda.published import PHASES

LOSSES = (("train", "control"), ("test", "measured"), ("restricted", "theory"), ("excluded", "third"))


def rows(ds: xr.Dataset) -> list[dict]:
    """One line per seed: its key frequencies, when each loss moved, and the end."""
    at = times(ds)
    lines = []
    for seed in ds.seed.values:
        one = ds.sel(seed=seed)
        end = one.isel(epoch=-1)
        keys = " ".join(str(int(k)) for k in one.frequency.values[one["keys"].values > 0])
        line = {"seed": int(seed), "key frequencies": keys}
        line |= {f"{name} since epoch": float(epoch.sel(seed=seed)) for name, epoch in at.items()}
        line |= {f"{name} loss, end": float(end[f"{name}_loss"]) for name, _ in LOSSES}
        line |= {"test accuracy, end": float(end.test_accuracy), "Gini, end": float(end.gini)}
        lines.append(line)
    return lines


def draw(ds: xr.Dataset, published: bool, fig: Figure) -> None:
    """Losses, Gini coefficient and squared weights over epochs; at paper scale with the published borders of the phases."""
    left, middle, right = fig.subplots(1, 3)
    for name, color in LOSSES:
        plotting.band(left, ds.epoch, ds[f"{name}_loss"].transpose(..., "epoch"), name, color)
    left.axhline(float(np.ravel(ds.predicted_chance)[0]), linestyle=":", color=plotting.COLORS["control"], label="chance")
    left.set(yscale="log", xlabel="epoch", ylabel="loss")
    plotting.band(middle, ds.epoch, ds.gini.transpose(..., "epoch"), "Gini coefficient", "fourth")
    middle.set(xlabel="epoch", ylabel="Gini coefficient, Fourier norms of the embedding")
    plotting.band(right, ds.epoch, ds.norm.transpose(..., "epoch"), "squared weights", "fifth")
    right.set(xlabel="epoch", ylabel="sum of squared weights")
    for ax in (left, middle, right) if published else ():
        for epoch in list(PHASES.values())[1:]:
            ax.axvline(epoch, linestyle="--", linewidth=0.8, color=plotting.COLORS["control"])


def run(scale: str, out: Path) -> None:
    """Train, print, draw, save."""
    grid, seeds = (STUDY.paper, STUDY.paper_seeds) if scale == "paper" else (jd.grid(Training, p=53), STUDY.seeds)
    ds = experiment.sweep(out, f"nanda_{scale}", STUDY.trial, grid, seeds, chunk=1)
    borders = ", ".join(f"{name} from {epoch}" for name, epoch in PHASES.items())
    experiment.table(out, f"nanda_{scale}_seeds", rows(ds), f"published phases at p = 113, in epochs: {borders}")
    experiment.figure(out, f"nanda_progress_{scale}", lambda fig: draw(ds, scale == "paper", fig), (12.0, 3.6))
    experiment.save(out, f"nanda_progress_{scale}", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
