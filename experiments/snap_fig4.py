"""Scan & Snap, Figure 4: attention of the first class of Syn-Small on its 20 tokens while training by SGD with momentum.

Tokens 0-9 are common to both classes, 10-19 are the class's own, in rising frequency. Paper: arXiv 2305.16380, which shows one
run; here the run of seed 0 next to the mean over seeds.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, stats
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic.syn import Syn, small_trial

SEEDS = {"quick": 10, "paper": 100}
ITERATIONS = (0, 2, 4, 6, 8, 10, 48)  # those drawn in the paper
COMMON = 10


def draw(c: xr.DataArray, fig: Figure) -> None:
    """Heat maps of attention, tokens by iterations: one run, and the mean over seeds."""
    panels = fig.subplots(1, 2, sharey=True)
    top = float(c.max())
    shown = (c.isel(seed=0), "one run (seed 0)"), (c.mean("seed"), f"mean over {c.sizes['seed']} seeds")
    for ax, (part, title) in zip(panels, shown, strict=True):
        image = ax.imshow(part.transpose("record", "slot"), aspect="auto", vmin=0, vmax=top, interpolation="nearest")
        ax.axvline(COMMON - 0.5, color="white", linewidth=0.8, linestyle="--")
        ax.set_yticks(range(len(ITERATIONS)), [str(i) for i in ITERATIONS])
        ax.set_xticks(range(0, c.sizes["slot"], 2))
        ax.set(xlabel="token (0-9 common, 10-19 the class's own)", title=title)
        ax.grid(visible=False)
    panels[0].set_ylabel("iteration")
    fig.colorbar(image, ax=panels, label="attention $c_0$")


def rows(c: xr.DataArray) -> list[dict]:
    """Attention on groups of tokens at the drawn iterations, mean over seeds and 95% interval."""
    lines = []
    parts = {
        "common tokens, sum": c.isel(slot=slice(COMMON)).sum("slot"),
        "token 10": c.isel(slot=COMMON),
        "token 14": c.isel(slot=COMMON + 4),
        "token 19": c.isel(slot=-1),
    }
    for iteration in ITERATIONS:
        row = {"iteration": iteration}
        for name, values in parts.items():
            mean, low, high = (float(v) for v in stats.mean_interval(values.sel(record=iteration), "seed"))
            row |= {name: mean, f"+- {name.split(',')[0]}": (high - low) / 2}
        lines.append(row)
    return lines


def run(scale: str, out: Path) -> None:
    """Train, print attention by groups of tokens, draw, and save the data."""
    row = published.FIG5[0]
    grid = jd.grid(Syn, optimizer=row.optimizer, momentum=row.momentum, ratio=row.ratio)
    ds = experiment.sweep(out, "runs", small_trial, grid, SEEDS[scale])
    c = ds.first_class.sel(record=np.array(ITERATIONS))
    experiment.table(
        out, "attention", rows(c), f"Attention of class 0, {ds.sizes['seed']} seeds, mean and half of the 95% interval"
    )
    experiment.figure(out, "snap_fig4", lambda fig: draw(c, fig), (9.0, 3.2))
    experiment.save(out, "snap_fig4", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
