"""Superposition, trained: inner products of thoughts with embeddings of nodes, by group and thought, beside the published means.

Networks trained by Coconut on small balanced graphs; shown are those that learned the task. Groups are nested, as published: the
optimal node, the frontier (nodes at this distance from the root), reachable nodes (within this distance), and those that are not.
The histograms are of disjoint groups: the frontier without the optimal node, and nodes nearer to the root. `--scale paper` trains
wider networks on three steps. An interrupted run resumes. Paper: arXiv 2505.12514.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.coc import published
from jaxdyn.theories.coc.learned import learners
from jaxdyn.theories.coc.trials.training import Training, trial

SCALES = {"quick": {"seeds": 4}, "paper": {**published.SIZES, "seeds": 3}}
COLORS = ("measured", "third", "fourth", "control")
LABELS = {  # of the disjoint groups
    "optimal": "node of the path",
    "frontier": "other nodes as far from the root",
    "nearer": "nodes nearer to the root",
    "unreachable": "all other nodes",
}


def shown(ds: xr.Dataset) -> xr.Dataset:
    """The networks that learned the task; all of them if none did."""
    learned = np.flatnonzero(learners(ds).values.ravel())
    return ds.isel(seed=learned) if learned.size else ds


def groups(ds: xr.Dataset, thought: int) -> dict[str, np.ndarray]:
    """Which nodes are optimal, on the frontier, nearer and farther, [seed, graph, node]."""
    away = ds.nearest.transpose("seed", "graph", "node").values
    best = ds.path.sel(thought=thought).transpose("seed", "graph").values[..., None] == np.arange(away.shape[-1])
    return {"optimal": best, "frontier": away == thought, "nearer": away < thought, "unreachable": away > thought}


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each thought and nested group: mean over runs, lowest and highest run, published lowest and highest."""
    lines = []
    for i in ds.thought.values.tolist():
        of = groups(ds, i)
        of["reachable"] = of["frontier"] | of.pop("nearer")
        x = ds.products.sel(thought=i).transpose("seed", "graph", "node").values
        for name in published.PRODUCTS:
            means = np.array([run[here].mean() for run, here in zip(x, of[name], strict=True)])
            low, high = published.PRODUCTS[name][i - 1]
            line = {"thought": i, "group": name, "mean": means.mean(), "lowest run": means.min(), "highest run": means.max()}
            lines.append(line | {"paper lowest": low, "paper highest": high})
    return [{k: float(v) if isinstance(v, np.floating) else v for k, v in line.items()} for line in lines]


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Histograms of inner products by disjoint group, a panel a thought."""
    axes = fig.subplots(1, ds.sizes["thought"], sharey=True, squeeze=False)[0]
    for ax, i in zip(axes, ds.thought.values.tolist(), strict=True):
        x = ds.products.sel(thought=i).transpose("seed", "graph", "node").values
        of = groups(ds, i)
        of["frontier"] = of["frontier"] & ~of["optimal"]
        bins = np.linspace(x.min(), x.max(), 40).tolist()
        for (name, here), color in zip(of.items(), COLORS, strict=True):
            ax.hist(
                x[here],
                bins,
                density=True,
                histtype="step",
                linewidth=1.6,
                color=plotting.COLORS[color],
                **({"label": LABELS[name]} if i == 1 else {}),
            )
        ax.set(xlabel=rf"$\langle t_{i}, u_v \rangle$", title=f"thought {i}")
    axes[0].set(ylabel="density of nodes")


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields = dict(SCALES[scale])
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "coconut", trial, jd.grid(Training, recipe="coconut", **fields), seeds, chunk=1)
    best = shown(ds)
    title = f"Inner products of thoughts and embeddings, nested groups, {best.sizes['seed']} of {seeds} networks"
    experiment.table(out, "products", rows(best), title)
    experiment.figure(out, "sup_frontier", lambda fig: draw(best, fig), (8, 3.5))
    experiment.save(out, "coconut", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
