"""Trained networks: which nodes their thoughts hold, and how often they answer right compared with networks without thoughts.

The runs are those of :mod:`jaxdyn.theories.coc.training`: the construction of this theory says what such networks may learn.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import bonferroni_z
from jaxdyn.theories.coc.learned import LEARNED, SETUP, THREE_HOPS, able, among_learners
from jaxdyn.theories.coc.training import ORDERS, Training, trial

__all__ = ["CLAIMS", "judge_accuracy", "judge_frontier", "judge_walks"]

METHODS = ["coconut", "cot"]
AHEAD = 0.1
LEVEL = 0.975  # of each of two intervals
HELD, LOWER = 1.0, 0.05
PASSED = -0.2


def judge_frontier(ds: xr.Dataset) -> list[jd.Check]:
    """Student's t over graphs of the difference of neighbouring groups, of every network that learned, by thought.

    Of nodes in thoughts, then of edges in the attention of step i; at step 1 frontier and reachable edges are the same.
    """
    gate, flags = able(ds)
    thoughts = ds.thought.values.tolist()
    nodes = {f"t of {o}, thought {i}": ds.measured_gaps_t.sel(order=o, thought=i) for i in thoughts for o in ORDERS}
    edges = {
        f"t of attention, {o}, step {i}": ds.measured_looks_t.sel(order=o, thought=i)
        for i in thoughts
        for o in ORDERS
        if i > 1 or o != ORDERS[1]
    }
    least = bonferroni_z(ds.sizes["seed"] * (len(nodes) + len(edges)), 0.998)
    return [gate, *(jd.at_least(name, among_learners(t, flags), least) for name, t in (nodes | edges).items())]


def judge_apart(ds: xr.Dataset) -> list[jd.Check]:
    """The last difference of disjoint groups, nearer nodes minus unreachable ones, of every network that learned."""
    gate, flags = able(ds)
    last = among_learners(ds.measured_apart.sel(order=ORDERS[-1]), flags)
    return [
        gate,
        *(jd.at_most(f"nearer minus unreachable, thought {i}", last.sel(thought=i), PASSED) for i in ds.thought.values.tolist()),
    ]


def judge_walks(ds: xr.Dataset) -> list[jd.Check]:
    """What thoughts hold of a node to which walks of one and of two edges lead, of every network that learned."""
    gate, flags = able(ds)
    product, t = among_learners(ds.measured_walk, flags), among_learners(ds.measured_walk_t, flags)
    with_it = {"kind": "with a shortcut"}
    lower = product.sel(kind="as drawn", early=2) - product.sel(**with_it, early=2)
    least = bonferroni_z(ds.sizes["seed"], 0.998)
    return [
        gate,
        jd.at_least("inner product with thought 1 minus unreachable nodes", product.sel(**with_it, early=1), HELD),
        jd.at_least("t of inner product with thought 2 minus nodes one step away", t.sel(**with_it, early=2), least),
        jd.mean_within("inner product with thought 2, as drawn minus with the shortcut", lower, over="seed", low=LOWER, level=0.95),
    ]


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy of Coconut minus that of chains of text and of plain answers, mean over starts from which Coconut learned."""
    jd.need(ds, recipe=("coconut", "cot"))
    full = ds.measured_accuracy.sel(recipe="coconut", drop=True)
    flags = full >= LEARNED
    rest = {
        name: among_learners(full - ds.measured_accuracy.sel(recipe=name), flags) for name in ("cot", "no_cot") if name in ds.recipe
    }
    return [
        jd.gate("Coconut's networks that learned the task", flags.sum("seed"), at_least=2),
        *(
            jd.mean_within(f"accuracy of Coconut minus that of {name}", gap, over="seed", low=AHEAD, level=LEVEL)
            for name, gap in rest.items()
        ),
    ]


# Thoughts hold no nodes at all, and attention is even.
NOTHING = jd.scaled(measured_gaps_t=0.0, measured_looks_t=0.0)
# A thought is one discrete node, the optimal one, whose edge alone is looked at, and all others are alike.
ONE_NODE = jd.swap(
    measured_gaps_t=lambda ds: ds.measured_gaps_t.where(ds.order == ORDERS[0], 0.0),
    measured_looks_t=lambda ds: ds.measured_looks_t.where(ds.order == ORDERS[0], 0.0),
)
# Thoughts do not matter, all methods end alike.
ALIKE = jd.swap(measured_accuracy=lambda ds: ds.measured_accuracy.mean("recipe"))
# The shortcut is not read, and thoughts are those of the graph without it.
UNREAD = jd.swap(measured_walk=lambda ds: ds.measured_walk.sel(kind="as drawn", drop=True))
# Breadth-first search, in which a node that was passed is passed, whatever walks lead to it.
BY_DISTANCE = jd.scaled(measured_walk_t=0.0)
# As in the construction, a thought holds all nodes within i steps alike.
CONSTRUCTION = jd.swap(measured_apart=lambda ds: abs(ds.measured_apart).where(ds.order == ORDERS[-1], 0.0))
# Thoughts hold no nodes at all.
FLAT = jd.scaled(measured_apart=0.0)


def plot_frontier(ds: xr.Dataset, fig: Figure) -> None:
    """Differences of neighbouring groups of nodes and of edges, by thought: one point per run."""
    rows = ("gaps", "shuffled", r"$\langle t_i, u_v \rangle$"), ("looks", "looks_shuffled", "attention")
    axes = fig.subplots(2, ds.sizes["thought"], sharey="row", sharex=True, squeeze=False)
    for line, (own, other, label) in zip(axes, rows, strict=True):
        for ax, i in zip(line, ds.thought.values, strict=True):
            for name, color, title in ((f"measured_{own}", "measured", "same example"), (other, "control", "other examples")):
                values = ds[name].sel(thought=i).transpose(..., "order").values.reshape(-1, ds.sizes["order"])
                at = np.broadcast_to(np.arange(ds.sizes["order"]), values.shape)
                named = {"label": title} if ax is axes[0, 0] else {}
                ax.plot(at.ravel(), values.ravel(), "o", color=plotting.COLORS[color], alpha=0.6, **named)
            ax.axhline(0, linestyle="--", color=plotting.COLORS["theory"])
            ax.set_xticks(range(ds.sizes["order"]), ORDERS, rotation=30, ha="right", rotation_mode="anchor")
            ax.set(xlim=(-0.4, ds.sizes["order"] - 0.6))
        line[0].set(ylabel=label)
    for ax, i in zip(axes[0], ds.thought.values, strict=True):
        ax.set(title=f"thought {i}, step {i}")


def plot_walks(ds: xr.Dataset, fig: Figure) -> None:
    """The node of the shortcut in thoughts 1 and 2: one line per run."""
    axes = fig.subplots(1, 2, sharey=True)
    for ax, i in zip(axes, (1, 2), strict=True):
        values = ds.measured_walk.sel(early=i).transpose(..., "kind").values.reshape(-1, 2)
        ax.plot([0, 1], values.T, "o-", color=plotting.COLORS["measured"], alpha=0.6)
        ax.axhline(0, linestyle="--", color=plotting.COLORS["theory"])
        ax.set_xticks([0, 1], ds.kind.values.tolist())
        ax.set(title=f"thought {i}", xlim=(-0.4, 1.4))
    axes[0].set(ylabel=r"$\langle t_i, u_v \rangle$ minus unreachable nodes")


def plot_accuracy(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy by method: one point per run."""
    ax = fig.subplots()
    for at, name in enumerate(ds.recipe.values):
        values = ds.measured_accuracy.sel(recipe=name).values.ravel()
        ax.plot([at] * values.size, values, "o", color=plotting.COLORS["measured"], alpha=0.6)
    ax.axhline(0.5, linestyle="--", color=plotting.COLORS["theory"])
    ax.set_xticks(range(ds.sizes["recipe"]), [str(m).replace("_", " ") for m in ds.recipe.values], rotation=20)
    ax.set(ylabel="right answers", ylim=(-0.03, 1.03))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, recipe="coconut"),
    paper=jd.grid(Training, recipe="coconut", **THREE_HOPS),
    seeds=4,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2505.12514, section 5; sizes and bounds ours",
    plot=plot_frontier,
    caption="Mean inner product of thoughts with embeddings (above), and attention to edges, mean over heads (below): a group "
    "minus the next one, nested groups; grey: with thoughts, or attention, of other examples. A point is a run.",
)

LOOKED = jd.looked(at="0:4", confirmed="5000:5004")

CLAIMS = (
    STUDY.claim(
        id="sup.trained_frontier",
        statement=rf"In {SETUP} by Coconut, with two thoughts: are the inner products $\langle t_i, u_v \rangle$ of thought $i$ "
        r"with embeddings larger for node $i$ of the path than on average over the nodes at distance $i$ from the root, larger "
        "there than on average over all nodes within $i$ steps, and larger there than for all others? Is the attention of the "
        "last layer at step $i$ so ordered by edges: from node $i-1$ of the path to node $i$, from nodes at distance $i-1$, from "
        "nodes within $i-1$ steps, from all others? Judged is Student's t over 256 graphs, the lowest of all networks that "
        f"learned the task (accuracy at least {LEARNED}). In three sets of four starts it is at least 2.8 for five of the six "
        "differences of nodes and 1.5 to 5.1 for the last, nodes within two steps minus all others; of edges it is at least 20, "
        "but for the edge of the path minus the frontier, where it is 0.7 to 5.9.",
        expected="measured",
        judge=judge_frontier,
        controls={
            "thoughts and attention of other examples": jd.swap(measured_gaps_t="shuffled_t", measured_looks_t="looks_shuffled_t"),
            "networks that are not trained": {"every": 0.0},
        },
        rivals={"thoughts hold no nodes, attention is even": NOTHING, "a thought is one node": ONE_NODE},
        found={
            "t of optimal - frontier, thought 1": (1, 12),
            "t of frontier - reachable, thought 1": (40, 75),
            "t of reachable - unreachable, thought 1": (20, 45),
            "t of optimal - frontier, thought 2": (9, 42),
            "t of frontier - reachable, thought 2": (25, 80),
            "t of reachable - unreachable, thought 2": (-5, 12),
            "t of attention, optimal - frontier, step 1": (0, 12),
            "t of attention, reachable - unreachable, step 1": (15, 150),
            "t of attention, optimal - frontier, step 2": (-3, 9),
            "t of attention, frontier - reachable, step 2": (10, 35),
            "t of attention, reachable - unreachable, step 2": (20, 50),
        },
    ),
    STUDY.claim(
        id="sup.trained_passed",
        statement=f"In {SETUP} by Coconut, with two thoughts: trained thoughts are not those of the construction, which hold all "
        f"nodes within reach alike. In every network that learned the task (accuracy at least {LEARNED}), nodes nearer to the "
        "root than $i$ steps have smaller inner products with thought $i$ than nodes out of its reach, by 0.2 at least on average.",
        judge=judge_apart,
        controls={"groups exchanged": jd.rolled(measured_apart="order")},
        rivals={"thoughts hold no nodes": FLAT, "all nodes within reach alike": CONSTRUCTION},
        bounds=LOOKED,
    ),
    STUDY.claim(
        id="sup.trained_walks",
        statement=f"In {SETUP} by Coconut, with two thoughts: is the frontier that of breadth-first search, nodes at distance "
        f"$i$, or that of walks, ends of walks of $i$ edges? In these trees the two are one. With an edge more, from the root to "
        "a node two steps away, this node is one step away, and a walk of two edges ends there. Judged are networks that learned "
        f"the task (accuracy at least {LEARNED}): whether thought 1 then holds it (inner product minus that with unreachable "
        "nodes), whether thought 2 has a larger inner product with it than with the other nodes one step away, as if by walks "
        "(Student's t over 256 graphs; the lowest of four starts is 4.1, of four others 4.0), and how much smaller this is than "
        "without the edge (mean over networks, with its 95% interval: 0.42 and 0.21 in the two sets, the second undecided).",
        expected="measured",
        judge=judge_walks,
        rivals={"the shortcut is not read": UNREAD, "breadth-first search": BY_DISTANCE},
        found={
            "inner product with thought 1 minus unreachable nodes": (1.5, 4.5),
            "t of inner product with thought 2 minus nodes one step away": (0, 12),
            "inner product with thought 2, as drawn minus with the shortcut": (0, 0.8),
        },
        plot=plot_walks,
        caption="Inner product of thoughts 1 and 2 with a node two steps from the root, minus the mean over unreachable nodes, in "
        "the graph as drawn and with an edge from the root to this node. A line is a run.",
    ),
    STUDY.claim(
        id="sup.trained_acc",
        statement=f"In {SETUP}: are continuous thoughts needed? By how much is the accuracy of a network trained by Coconut "
        "ahead of that of one trained on chains of text, or on answers alone, from the same start (mean over the starts from "
        f"which Coconut learned the task, accuracy at least {LEARNED}, with its 95% interval)? In eight starts (study), of which "
        "six are counted, it is ahead of chains of text by 0.17, from -0.10 to 0.43, which decides nothing, and of answers alone "
        "by 0.39, from 0.35 to 0.44.",
        expected="measured",
        judge=judge_accuracy,
        quick=jd.grid(Training, recipe=METHODS),
        paper=jd.grid(Training, recipe=[*METHODS, "no_cot"]),
        rivals={"all methods end alike": ALIKE},
        found={"accuracy of Coconut minus that of cot": (-0.1, 0.4)},
        plot=plot_accuracy,
        caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
        "candidates.",
    ),
)
