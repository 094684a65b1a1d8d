"""Superposition, trained: what thoughts hold and which edges are looked at, by group and thought, next to the published means.

Networks trained by Coconut on small balanced graphs; shown are those that learned the task. Groups are nested, as published: the
optimal node, the frontier (nodes at this distance from the root), reachable nodes (within this distance), and those that are not;
attention is that of the last layer to edges, by their source. The histograms are of disjoint groups: the frontier without the
optimal node, and nodes nearer to the root. A second figure shows what thoughts hold node by node, next to the construction.
`--scale paper` trains wider networks on three steps. An interrupted run resumes. Paper: arXiv 2505.12514.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.coc import published
from jaxdyn.theories.coc.training import THREE_HOPS, Training, shown, trial

TALKS = ("practical:coc-not-interpretable", "practical:sup-sauce")

SCALES = {"quick": {"seeds": 4}, "paper": {**THREE_HOPS, "seeds": 8}}
COLORS = ("measured", "third", "fourth", "control")
LABELS = {  # of the disjoint groups
    "optimal": "node of the path",
    "frontier": "other nodes as far from the root",
    "nearer": "nodes nearer to the root",
    "unreachable": "all other nodes",
}


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
    """Histograms of inner products by disjoint group, a panel per thought."""
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


def edge_groups(ds: xr.Dataset, step: int) -> dict[str, np.ndarray]:
    """Optimal, frontier, reachable and unreachable edges, by their source, [seed, graph, edge]."""
    away = ds.nearest.transpose("seed", "graph", "node").values
    edges = ds.edges.transpose("seed", "graph", "edge", "end").values.astype(int)
    source = np.take_along_axis(away, edges[..., 0], -1)
    into = edges[..., 1] == ds.path.sel(thought=step).transpose("seed", "graph").values[..., None]  # every node has one parent
    return {"optimal": into, "frontier": source == step - 1, "reachable": source < step, "unreachable": source >= step}


def attention(ds: xr.Dataset) -> list[dict]:
    """A line for each step and nested group of edges: attention in percent of a head's, mean over heads, graphs and edges."""
    lines = []
    for i in ds.thought.values.tolist():
        x = 100 * ds.seen.sel(thought=i).transpose("seed", "graph", "edge").values
        for name, here in edge_groups(ds, i).items():
            means = np.array([run[group].mean() for run, group in zip(x, here, strict=True)])
            line = {"step": i, "edges": name, "mean": means.mean(), "deviation": experiment.deviation(x[here])}
            line |= {"lowest run": means.min(), "highest run": means.max()}
            mean, deviation = (100 * v / published.HEADS for v in published.ATTENTION[name][i - 1])
            lines.append(line | {"paper mean": mean, "paper deviation": deviation})
    return [{k: float(v) if isinstance(v, np.floating) else v for k, v in line.items()} for line in lines]


def walks(ds: xr.Dataset) -> list[dict]:
    """A line per network: a node two steps away, minus unreachable ones, in thoughts 1 and 2, with and without the shortcut."""
    lines = []
    for run in range(ds.sizes["seed"]):
        one = ds.isel(seed=run)
        line = {"network": int(one.seed)}
        for i in (1, 2):
            line |= {f"thought {i}, {kind}": float(one.measured_walk.sel(early=i, kind=kind)) for kind in ds.kind.values.tolist()}
        lines.append(line | {"t, thought 2, minus nodes one step away": float(one.measured_walk_t.sel(early=2, kind=ds.kind[-1]))})
    return lines


def roles(ds: xr.Dataset) -> tuple[list[str], np.ndarray]:
    """Nodes by what they are to the path: names, and masks [role, seed, graph, node]."""
    away = ds.nearest.transpose("seed", "graph", "node").values
    at = np.arange(away.shape[-1])
    path = [ds.path.sel(thought=i).transpose("seed", "graph").values[..., None] == at for i in ds.thought.values.tolist()]
    negative = ds.negative.transpose("seed", "graph").values[..., None] == at
    names, masks = ["root"], [away == 0]
    for i, best in enumerate(path, 1):
        names += [f"{i} away, {'target' if i == len(path) else 'path'}", f"{i} away, others"]
        masks += [best, (away == i) & ~best]
    return [*names, "other candidate", "other nodes without a path"], np.stack([
        *masks, negative, (away == len(path) + 1) & ~negative
    ])  # fmt: skip


def heat(ds: xr.Dataset, fig: Figure) -> None:
    """What thoughts hold: the construction and a trained network on one graph, and all networks by role of a node."""
    count = ds.sizes["thought"]
    names, masks = roles(ds)
    role = masks[:, 0, 0].argmax(0)
    order = np.argsort(role, kind="stable")
    label = [f"{names[role[v]].replace(', others', '').replace('other nodes without a', 'no')}: {v}" for v in order]
    away = ds.nearest.isel(seed=0, graph=0).values
    reach = away[:, None] <= np.arange(1, count + 1)
    ideal = reach / np.sqrt(reach.sum(0))
    ours = ds.products.isel(seed=0, graph=0).transpose("node", "thought").values
    x = ds.products.transpose("thought", "seed", "graph", "node").values
    means = np.array([[x[i][mask].mean() for i in range(count)] for mask in masks])
    panels = (
        ("construction, one graph", ideal[order], label),
        ("trained, the same graph", ours[order], label),
        (f"trained, mean of {x.shape[1]} networks", means, names),
    )
    for ax, (title, image, rows_) in zip(fig.subplots(1, 3), panels, strict=True):
        most = abs(image).max()
        ax.imshow(image, vmin=-most, vmax=most, cmap="RdBu_r", aspect="auto", interpolation="nearest")
        for (r, c), value in np.ndenumerate(image):
            color = "white" if abs(value) > 0.7 * most else "black"
            ax.text(c, r, f"{value:.2f}" if most < 1 else f"{value:.1f}", ha="center", va="center", fontsize=8, color=color)
        ax.set_xticks(range(count), [f"$t_{i}$" for i in range(1, count + 1)])
        ax.set_yticks(range(len(rows_)), rows_)
        ax.set(title=title, xlabel="thought")
        ax.grid(False)
        ax.tick_params(length=0)
    fig.suptitle(r"inner products $\langle t_i, u_v \rangle$ of thoughts and nodes, by distance from the root", fontsize=10)


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields = dict(SCALES[scale])
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "coconut", trial, jd.grid(Training, recipe="coconut", **fields), seeds, chunk=1)
    best = shown(ds)
    title = f"Inner products of thoughts and embeddings, nested groups, {best.sizes['seed']} of {seeds} networks"
    experiment.table(out, "products", rows(best), title)
    experiment.table(out, "attention", attention(best), "Attention to edges, percent of a head, by their source, nested groups")
    experiment.table(
        out, "walks", walks(best), "A node two steps from the root, in the graph as drawn and with an edge from the root"
    )
    experiment.figure(out, "sup_frontier", lambda fig: draw(best, fig), (8, 3.5))
    experiment.figure(out, "sup_frontier_held", lambda fig: heat(best, fig), (11, 4.2))
    experiment.save(out, "coconut", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
