"""Claims on trained networks: which nodes their thoughts hold, and how often they answer right beside networks without thoughts.

The runs are those of :mod:`jaxdyn.theories.coc.trials.training`: the construction of this theory says what such networks may learn.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import bonferroni_z
from jaxdyn.theories.coc.trials.training import ORDERS, Training, trial

__all__ = ["CLAIMS", "judge_accuracy", "judge_frontier"]

METHODS = ["coconut", "no_curriculum", "pause_as_thought", "cot", "no_cot"]  # those of coc.curriculum, whose runs these are
AHEAD = 0.2
SETUP = (
    "two-layer decoders of width 32 trained from scratch on balanced reachability problems (two families of five nodes, candidates "
    "two steps from their roots, random names)"
)


def judge_frontier(ds: xr.Dataset) -> list[jd.Check]:
    """Student's t over graphs of the difference of neighbouring groups, the least of all runs, by thought."""
    accuracy = ds.measured_answered.isel(inputs=-1).mean("seed")
    t = ds.measured_gaps_t
    least = bonferroni_z(t.sizes["seed"] * t.sizes["thought"] * t.sizes["order"], 0.998)
    return [
        jd.gate("accuracy, mean over runs", accuracy, at_least=0.8),
        *(
            jd.at_least(f"t of {order}, thought {i}", t.sel(order=order, thought=i), least)
            for i in ds.thought.values
            for order in ORDERS
        ),
    ]


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy of Coconut less that of chains of text and of plain answers, paired by seed."""
    jd.need(ds, recipe=("coconut", "cot", "no_cot"))
    full = ds.measured_accuracy.sel(recipe="coconut", drop=True)
    rest = {name: full - ds.measured_accuracy.sel(recipe=name) for name in ("cot", "no_cot")}
    return [
        jd.gate("accuracy of Coconut, mean over runs", full.mean("seed"), at_least=0.8),
        *(jd.mean_within(f"accuracy of Coconut less that of {name}", gap, over="seed", low=AHEAD) for name, gap in rest.items()),
    ]


def nothing(ds: xr.Dataset) -> xr.Dataset:
    """A rival: thoughts hold no nodes at all."""
    return ds.assign(measured_gaps_t=ds.measured_gaps_t * 0)


def one_node(ds: xr.Dataset) -> xr.Dataset:
    """A rival: a thought is one discrete node, the optimal one, and all others are alike."""
    return ds.assign(measured_gaps_t=ds.measured_gaps_t.where(ds.order == ORDERS[0], 0.0))


def alike(ds: xr.Dataset) -> xr.Dataset:
    """A rival: thoughts do not matter, all methods end alike."""
    mean = ds.measured_accuracy.mean("recipe")
    return ds.assign(measured_accuracy=mean.broadcast_like(ds.measured_accuracy).transpose(*ds.measured_accuracy.dims))


def plot_frontier(ds: xr.Dataset, fig: Figure) -> None:
    """Differences of neighbouring groups, by thought: a point a run."""
    axes = fig.subplots(1, ds.sizes["thought"], sharey=True, squeeze=False)[0]
    for ax, i in zip(axes, ds.thought.values, strict=True):
        for name, color, label in (("measured_gaps", "measured", "own thoughts"), ("shuffled", "control", "of other examples")):
            values = ds[name].sel(thought=i).transpose(..., "order").values.reshape(-1, ds.sizes["order"])
            at = np.broadcast_to(np.arange(ds.sizes["order"]), values.shape)
            ax.plot(at.ravel(), values.ravel(), "o", color=plotting.COLORS[color], alpha=0.6, label=label)
        ax.axhline(0, linestyle="--", color=plotting.COLORS["theory"])
        ax.set_xticks(range(ds.sizes["order"]), [o.replace(" - ", "\n- ") for o in ORDERS])
        ax.set(title=f"thought {i}")
    axes[0].set(ylabel=r"difference of $\langle t_i, u_v \rangle$")
    axes[0].legend()


def plot_accuracy(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy by method: a point a run."""
    ax = fig.subplots()
    for at, name in enumerate(ds.recipe.values):
        values = ds.measured_accuracy.sel(recipe=name).values.ravel()
        ax.plot([at] * values.size, values, "o", color=plotting.COLORS["measured"], alpha=0.6)
    ax.axhline(0.5, linestyle="--", color=plotting.COLORS["theory"])
    ax.set_xticks(range(ds.sizes["recipe"]), [str(m).replace("_", " ") for m in ds.recipe.values], rotation=20)
    ax.set(ylabel="right answers", ylim=(-0.03, 1.03))


LARGE = {"hops": 3, "width": 128, "heads": 4, "hidden": 256, "lr": 1e-3, "every": 1000.0, "samples": 40, "batch": 128}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, recipe=METHODS),
    paper=jd.grid(Training, recipe=METHODS, **LARGE),
    seeds=4,
    paper_seeds=4,
    evidence="network",
    source="arXiv:2505.12514, section 5; sizes and bounds ours",
)

CLAIMS = (
    STUDY.claim(
        id="sup.trained_frontier",
        statement=r"In two-layer decoders of width 32 trained by Coconut (problems of two steps, two thoughts), the inner products "
        r"$\langle t_i, u_v \rangle$ of thought $i$ with embeddings are larger for node $i$ of the path than on average over all "
        "nodes at distance $i$ from the root, larger there than on average over all nodes within $i$ steps, and larger there than "
        "for all others, in every run (paired over 256 graphs).",
        judge=judge_frontier,
        quick=jd.grid(Training, recipe="coconut"),
        paper=jd.grid(Training, recipe="coconut", **LARGE),
        controls={
            "thoughts of other examples": jd.swap(measured_gaps_t="shuffled_t"),
            "not trained": {"every": 0.0},
        },
        rivals={"thoughts hold no nodes": nothing, "a thought is one node": one_node},
        bounds="derived",
        plot=plot_frontier,
        caption="Mean inner product of thoughts with embeddings, a group of nodes less the next one; grey: with thoughts of other "
        "examples. A point is a run.",
    ),
    STUDY.claim(
        id="sup.trained_acc",
        statement=f"In {SETUP}, Coconut answers right at least 0.2 more often than chains of text and than answers "
        "without any step.",
        judge=judge_accuracy,
        controls={"accuracies of the methods exchanged": jd.rolled(measured_accuracy="recipe")},
        rivals={"all methods end alike": alike},
        bounds="derived",
        plot=plot_accuracy,
        caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
        "candidates.",
    ),
)
