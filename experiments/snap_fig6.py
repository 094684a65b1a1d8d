"""Scan & Snap, Figure 6: entropy of attention on Syn-Medium over learning rates, their ratio, and the number of queries.

All 64 published cells, means and standard deviations over 10 (quick) or 100 (paper) seeds next to the paper's over 10 seeds.
Paper: arXiv 2305.16380; its text says SGD, its numbers are met with momentum 0.9.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting, stats
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.synthetic import fig6_adam_sgd
from jaxdyn.theories.snap.synthetic.syn import MEDIUM, medium_trial

SEEDS = {"quick": 10, "paper": 100}


def comparison(ds: xr.Dataset) -> xr.Dataset:
    """For every cell: our mean, standard deviation and 95% interval, the paper's numbers, and the difference in standard errors."""
    x = ds.measured_entropy
    mean, low, high = stats.mean_interval(x, "seed")
    sd, paper, paper_sd = x.std("seed", ddof=1), ds.predicted_entropy.mean("seed"), ds.published_sd.mean("seed")
    gap, error, freedom = fig6_adam_sgd.from_published(ds)
    numbers = {"mean": mean, "sd": sd, "low": low, "high": high, "paper mean": paper, "paper sd": paper_sd}
    allowed = stats.bonferroni_t(gap.size, freedom + 1, fig6_adam_sgd.LEVEL)
    return xr.Dataset(numbers | {"difference": mean - paper, "in s.e.": gap / error, "allowed": allowed})


def rows(cells: xr.Dataset) -> list[dict]:
    """One line per cell."""
    order = ("num_last", "lr", "ratio")
    flat = cells.stack(cell=order)
    lines = []
    for i in range(flat.sizes["cell"]):
        one = flat.isel(cell=i)
        place = {"queries": int(one.num_last), "rate of Z": float(one.lr), "rate of Y / Z": float(one.ratio)}
        numbers = {
            name: float(one[name]) for name in ("mean", "sd", "low", "high", "paper mean", "paper sd", "difference", "in s.e.")
        }
        lines.append(place | numbers | {"within": "yes" if abs(one["in s.e."]) <= one.allowed else "NO"})
    return lines


def shapes(cells: xr.Dataset) -> list[dict]:
    """For every number of queries: largest difference, and whether the shape is the published one."""
    lines = []
    for queries in cells.num_last.values:
        one = cells.sel(num_last=queries)
        row = {"queries": int(queries), "largest |difference|": float(abs(one.difference).max())}
        row |= {"mean difference": float(one.difference.mean()), "rms in s.e.": float(np.sqrt((one["in s.e."] ** 2).mean()))}
        for name in ("mean", "paper mean"):
            lowest = ", ".join(f"{float(r):g}" for r in one[name].idxmin("ratio"))
            row |= {f"{name}: falls with rate": bool((one[name].diff("lr") < 0).all()), f"{name}: ratio of lowest entropy": lowest}
        lines.append(row)
    return lines


def draw_panels(cells: xr.Dataset, fig: Figure) -> None:
    """Entropy over the ratio, a panel for each number of queries: ours with standard deviations over seeds, published dashed."""
    panels = fig.subplots(1, cells.sizes["num_last"], sharey=True)
    for ax, queries in zip(panels, cells.num_last.values, strict=True):
        for lr, color in zip(cells.lr.values, plotting.CYCLE, strict=False):
            one = cells.sel(num_last=queries, lr=lr)
            for shift, name, style in ((0.97, "", "o-"), (1.03, "paper ", "x--")):
                label = f"rate of Z = {lr:g}" if not name and ax is panels[-1] else None
                x, y, bars = one.ratio * shift, one[f"{name}mean"], one[f"{name}sd"]
                ax.errorbar(x, y, bars, fmt=style, color=color, linewidth=1.0, elinewidth=0.6, label=label)
        ax.set(xscale="log", xlabel="rate of Y / rate of Z", title=f"{queries} " + ("query" if queries == 1 else "queries"))
        ax.set_xticks(cells.ratio.values, [f"{r:g}" for r in cells.ratio.values])
        ax.minorticks_off()
    panels[0].set_ylabel("entropy, own tokens (nats)")
    panels[-1].errorbar([], [], [], fmt="x--", color=plotting.COLORS["control"], label="published")
    panels[-1].legend(loc="lower left")


def draw_maps(cells: xr.Dataset, fig: Figure) -> None:
    """Heat maps of our means, with the published number below ours in every cell."""
    panels = fig.subplots(1, cells.sizes["num_last"], sharey=True)
    low, high = float(cells["mean"].min()), float(cells["mean"].max())
    for ax, queries in zip(panels, cells.num_last.values, strict=True):
        one = cells.sel(num_last=queries).transpose("lr", "ratio")
        image = ax.imshow(one["mean"], vmin=low, vmax=high, aspect="auto")
        for i, j in np.ndindex(one.sizes["lr"], one.sizes["ratio"]):
            here = one.isel(lr=i, ratio=j)
            color = "black" if float(here["mean"]) > (low + high) / 2 else "white"
            text = f"{float(here['mean']):.3f}\n({float(here['paper mean']):.3f})"
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=7)
        ax.set_xticks(range(one.sizes["ratio"]), [f"{r:g}" for r in one.ratio.values])
        ax.set_yticks(range(one.sizes["lr"]), [f"{r:g}" for r in one.lr.values])
        ax.set(xlabel="rate of Y / rate of Z", title=f"{queries} " + ("query" if queries == 1 else "queries"))
        ax.grid(visible=False)
    panels[0].set_ylabel("rate of Z")
    fig.colorbar(image, ax=panels, label="entropy, ours (published)")


def run(scale: str, out: Path) -> None:
    """Train all cells, print both tables, draw, and save the data."""
    grid = MEDIUM.replace(num_last=list(published.FIG6))
    ds = experiment.sweep(out, "runs", medium_trial, grid, SEEDS[scale])
    cells = comparison(ds)
    experiment.table(out, "cells", rows(cells), f"Entropy after 100 steps, {ds.sizes['seed']} seeds")
    experiment.table(out, "shape", shapes(cells), "Shape of the table, ours and the paper's")
    experiment.figure(out, "snap_fig6", lambda fig: draw_panels(cells, fig), (12.0, 3.8))
    experiment.figure(out, "snap_fig6_map", lambda fig: draw_maps(cells, fig), (12.0, 3.4))
    experiment.save(out, "snap_fig6", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
