"""Claims on all small graphs and trees: where navigation is exact, and that labels do not matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.sln import model
from jaxdyn.theories.sln.trials.atlas import Atlas, trial

__all__ = ["BEST", "CLAIMS", "instead", "judge_failures", "judge_graphs", "judge_labels", "judge_trees", "shares"]

BEST = "rw, 1/lam, all"
TREE = (BEST, "rw, 1/sqrt, all")
PAIRS = 39_678


def instead(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """All edges are embedded, or the next vertex is chosen, as this row says."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        taken = {v: ds[v].sel(embedding=name, drop=True) + 0 * ds[v] for v in ("measured_success", "sure")}
        return ds.assign({v: x.transpose(*ds[v].dims) for v, x in taken.items()})

    return breach


def failing(ds: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    """One less the probability of a shortest path, of the pair for which it is smallest."""
    return (1 - ds.measured_success.sel(embedding=list(names))).max(("graph", "source", "target"))


def unsure(ds: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    """Pairs for which a choice among ties leads astray."""
    return (1 - ds.sure.sel(embedding=list(names))).sum(("graph", "source", "target"))


def judge_graphs(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of every graph."""
    count = ds["pair"].sum(("graph", "source", "target"))
    return [
        jd.gate("ordered pairs", count, at_least=PAIRS, at_most=PAIRS),
        jd.at_most("probability of a detour, worst pair", failing(ds, (BEST,)), 1e-12),
        jd.at_most("pairs with a tied choice that is a detour", unsure(ds, (BEST,)), 0),
    ]


def judge_trees(ds: xr.Dataset) -> list[jd.Check]:
    """Every pair of every tree, by both embeddings."""
    return [
        jd.gate("trees", ds["pair"].sizes["graph"], at_least=92, at_most=92),
        jd.at_most("probability of a detour, worst pair", failing(ds, TREE), 1e-12),
    ]


def judge_failures(ds: xr.Dataset) -> list[jd.Check]:
    """The worst pair of each graph, which is never routed well."""
    worst = ds.measured_success.sel(embedding=BEST).min(("source", "target"))
    return [jd.at_most("probability of a shortest path, worst pair of a graph", worst, 1e-12)]


def judge_labels(ds: xr.Dataset) -> list[jd.Check]:
    """All embeddings, with other labels."""
    error = abs(ds.measured_success - ds.predicted_success)
    return [jd.at_most("probability less that with other labels, absolutely", error, 1e-9)]


def shares(ds: xr.Dataset, pairs: str) -> xr.DataArray:
    """Mean over graphs of the share of pairs ("pair" or "far") that take a shortest path; 1 for a graph without any."""
    within = ("source", "target")
    count = ds[pairs].sum(within)
    return ((ds.measured_success * ds[pairs]).sum(within) / count.where(count > 0)).fillna(1.0)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Share of pairs that are not adjacent, by method and number of vertices."""
    ax = fig.subplots()
    one = shares(ds, "far").mean([d for d in ds["far"].dims if d not in ("graph", "source", "target")])
    sizes = ds.vertices.mean([d for d in ds.vertices.dims if d != "graph"])
    names = [str(e) for e in ds.embedding.values]
    for name in names:
        ns = sorted(set(sizes.values.tolist()))
        values = [float(100 * one.sel(embedding=name).where(sizes == n).mean()) for n in ns]
        shown = name in (BEST, "sym, 1, 3", "sym, 1, all", model.GROUND, "rw, 1/sqrt, all")
        ax.plot(ns, values, "o-", lw=1.5 if shown else 0.6, alpha=1 if shown else 0.4, label=name if shown else None)
    ax.set(xlabel="vertices", ylabel="shortest path taken, %, pairs that are not adjacent", xticks=np.unique(sizes))
    ax.legend()


STUDY = jd.Study(trial=trial, quick=jd.grid(Atlas), seeds=1, evidence="algebra", bounds="derived", plot=plot, source="derived")
CAPTION = (
    "Pairs that are not adjacent for which a shortest path is taken, over the number of vertices: mean over graphs, by embedding."
)
WORLDS = {
    "normalised Laplacian, no weights, all eigenvectors": instead("sym, 1, all"),
    r"normalised Laplacian, weights $1/\lambda$": instead("sym, 1/lam, all"),
    "the next vertex is any neighbour": instead(model.CHANCE),
}

CLAIMS = (
    STUDY.claim(
        id="sln.exact_small",
        statement=r"Edges embedded by the eigenvectors of the line graph's random-walk Laplacian, all of them, with weights "
        r"$1/\lambda$, lead along a shortest path for all 39,678 ordered pairs of vertices of all 992 connected graphs with 4 to 7 "
        "vertices, whichever of tied vertices is next. (Enumeration, no training.)",
        source="arXiv:2502.08794, section 4, with weights that it does not state; enumeration: ours",
        judge=judge_graphs,
        controls=WORLDS,
        rivals={"ground states without the target (Steinerberger)": instead(model.GROUND)},
        caption=CAPTION,
    ),
    STUDY.claim(
        id="sln.counterexamples",
        statement=r"Weights $1/\lambda$ are not exact with 8 vertices: on each of five connected graphs with 8 vertices and 10 "
        "edges, listed with the trial, all eigenvectors of the line graph's random-walk Laplacian with these weights lead astray "
        "from some vertex to another, whichever of tied vertices is next. (Enumeration, no training.)",
        quick=jd.grid(Atlas, graphs="counterexamples", least=8, largest=8),
        judge=judge_failures,
        controls={r"weights $1/\sqrt\lambda$": instead("rw, 1/sqrt, all")},
        rivals={"ground states without the target (Steinerberger)": instead(model.GROUND)},
        caption=CAPTION,
    ),
    STUDY.claim(
        id="sln.tree_exact",
        statement=r"On all 92 trees with 4 to 9 vertices both embeddings by the random-walk Laplacian of the line graph, with "
        r"weights $1/\lambda$ and $1/\sqrt\lambda$, lead along the path between any two vertices. (Enumeration, no training; by "
        "the normalised Laplacian they do not.)",
        quick=jd.grid(Atlas, graphs="trees", largest=9),
        judge=judge_trees,
        controls=WORLDS,
        rivals={r"weights $1/\sqrt\lambda$, normalised Laplacian": instead("sym, 1/sqrt, all")},
        caption=CAPTION,
    ),
    STUDY.claim(
        id="sln.label_invariance",
        statement="The probability that navigation takes a shortest path does not depend on the names of vertices, nor on the "
        "eigenvectors that a solver picks within an eigenspace, if a cut after $k$ eigenvectors is moved on to the end of its "
        "eigenspace: to $10^{-9}$, for 13 embeddings and all ordered pairs of the 992 connected graphs with 4 to 7 vertices, each "
        "renamed at random. (Enumeration, no training; with eigenspaces cut in two it does.)",
        judge=judge_labels,
        controls={"eigenspaces may be cut in two": {"complete": 0.0}},
        rivals={"a shortest path always": jd.swap(predicted_success=1.0)},
        caption=CAPTION,
    ),
)
