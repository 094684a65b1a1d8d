"""How much faster and more reliable training is with more hidden nodes: success and epochs to a loss of 1e-3, 20 seeds.

d = 23, rate .01, decay 5e-5, widths from the 2d nodes of the smallest solution on; quick: 300 epochs, paper: 9900.
Paper: arXiv 2410.01779 (text of section 6).
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.theories.cogo.trained import overparam
from jaxdyn.theories.cogo.trained.overparam import SOLVED, trial
from jaxdyn.theories.cogo.training import Training

WIDTHS = overparam.WIDTHS
EPOCHS = {"quick": 300, "paper": 9900}


def rows(ds: xr.Dataset) -> list[dict]:
    """One line per width: share of runs that get there with its 95% interval, and the epochs they need."""
    lines = []
    for q in ds.width.values:
        rate = ds.measured_rate.sel(width=q).values.ravel()
        solved = int((rate > 0).sum())
        low, high = stats.wilson(solved, rate.size)
        line = {"q": int(q), "solved": f"{solved} of {rate.size}", "95% from": low, "to": high}
        epochs = 1 / rate[rate > 0]
        quantiles = np.quantile(epochs, (0.5, 0.1, 0.9)) if solved else (None,) * 3
        lines.append(line | dict(zip(("median epochs", "10%", "90%"), quantiles, strict=True)))
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Losses along training, a band for every width; epochs to the goal over the width."""
    left, right = fig.subplots(1, 2)
    for q, color in zip(ds.width.values, plotting.CYCLE, strict=False):
        plotting.band(left, ds.epoch, ds.loss.sel(width=q), label=f"q = {q:g}", color=color)
    left.axhline(SOLVED, linestyle="--", color=plotting.COLORS["control"])
    left.set(yscale="log", xlabel="epoch", ylabel="training loss", xlim=(0, 300))
    epochs = (1 / ds.measured_rate.where(ds.measured_rate > 0)).transpose("seed", "width")
    plotting.band(right, ds.width, epochs, label=f"loss < {SOLVED:g}", marker="o")
    right.axvline(46, linestyle="--", color=plotting.COLORS["theory"], label="2d nodes")
    right.set(xscale="log", yscale="log", xlabel="hidden nodes q", ylabel="epochs")


def run(scale: str, out: Path) -> None:
    """Train all widths, tabulate, draw."""
    grid = jd.grid(Training, width=WIDTHS, hidden=2048, epochs=EPOCHS[scale], every=5)
    ds = experiment.sweep(out, "runs", trial, grid, overparam.SEEDS)
    experiment.table(out, "overparam", rows(ds), f"Training loss below {SOLVED:g} within {EPOCHS[scale]} epochs, d = 23")
    experiment.figure(out, "cogo_overparam", lambda fig: draw(ds, fig), (10.0, 3.8))
    experiment.save(out, "cogo_overparam", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
