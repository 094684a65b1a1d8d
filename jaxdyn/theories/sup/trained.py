"""Trained networks: which nodes their thoughts hold, and how often they answer right compared with networks without thoughts.

The runs are those of :mod:`jaxdyn.theories.coc.training`: the construction of this theory says what such networks may learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.coc.model import ORDERS
from jaxdyn.theories.coc.training import (
    BY_COCONUT,
    KINDS,
    LEARNED,
    SETUP,
    STARTS,
    THREE_HOPS,
    Training,
    able,
    among_learners,
    starts,
    trial,
)

METHODS = ["coconut", "cot"]
LEVEL = 0.95  # of each interval
PASSED = -0.2
CLEAR = 3.0  # Student's t over graphs


def judge_frontier(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Differences of neighbouring groups, means over graphs and over networks that learned, by thought.

    Of nodes in thoughts, then of edges in the attention of step i; at step 1 frontier and reachable edges are the same.
    """
    gate, flags = able(ds)
    thoughts = ds.thought.values.tolist()
    nodes = {f"{o}, thought {i}": ds.measured_gaps.sel(order=o, thought=i) for i in thoughts for o in ORDERS}
    edges = {
        f"attention, {o}, step {i}": ds.measured_looks.sel(order=o, thought=i)
        for i in thoughts
        for o in ORDERS
        if i > 1 or o != ORDERS[1]
    }
    return [gate, *(mean(name, among_learners(gap, flags)) for name, gap in (nodes | edges).items())]


def mean(name: str, values: xr.DataArray) -> jd.Reading:
    """Mean over networks, with its interval."""
    return jd.mean_reading(name, values, over="seed", level=LEVEL)


def apart(ds: xr.Dataset, *orders: str) -> xr.DataArray:
    """A disjoint group of nodes minus a later one, of networks that learned: the sum of the differences between."""
    return among_learners(ds.measured_apart.sel(order=list(orders)).sum("order", skipna=False), able(ds)[1])


def judge_apart(ds: xr.Dataset) -> list[jd.Check]:
    """The last difference of disjoint groups, nearer nodes minus unreachable ones, of every network that learned."""
    last = apart(ds, ORDERS[-1])
    thoughts = ds.thought.values.tolist()
    return [able(ds)[0], *(jd.at_most(NEARER.format(i), last.sel(thought=i), PASSED) for i in thoughts)]


NEARER = "nearer minus unreachable, thought {}"
HELD = "inner product with thought 1, minus unreachable nodes"
ABOVE = "networks whose thought 2 holds the node above others one step away"
LOWER = "inner product with thought 2, without the edge minus with it"


def judge_walks(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """What thoughts hold of a node to which walks of one and of two edges lead, mean over networks that learned."""
    gate, flags = able(ds)
    product = among_learners(ds.measured_walk, flags)
    drawn, cut = (product.sel(kind=kind, drop=True) for kind in KINDS)
    t = among_learners(ds.measured_walk_t.sel(kind=KINDS[1], early=2, drop=True), flags)
    return [
        gate,
        mean(HELD, cut.sel(early=1)),
        jd.share_reading(ABOVE, (t >= CLEAR).where(t.notnull()), over="seed", level=LEVEL),
        mean(LOWER, drawn.sel(early=2) - cut.sel(early=2)),
    ]


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Accuracy of each method, mean over starts, and Coconut's minus that of the others, start by start."""
    jd.need(ds, recipe=METHODS)
    accuracy = {name: ds.measured_accuracy.sel(recipe=name, drop=True) for name in (*METHODS, "no_cot") if name in ds.recipe}
    full = accuracy.pop("coconut")
    return [
        jd.gate("Coconut's networks that learned the task", (full >= LEARNED).sum("seed"), at_least=2),
        starts(full, LEVEL),
        mean("accuracy of Coconut", full),
        *(mean(f"accuracy of {name}", other) for name, other in accuracy.items()),
        *(mean(f"accuracy of Coconut minus that of {name}", full - other) for name, other in accuracy.items()),
    ]


def number(values: xr.DataArray) -> float:
    """The mean as a number."""
    return float(values.mean())


DIFFERENCES = {  # of nodes and of edges, by the group that comes first
    o: (*(f"{o}, thought {i}" for i in (1, 2)), *(f"attention, {o}, step {i}" for i in (1, 2) if i > 1 or o != ORDERS[1]))
    for o in ORDERS
}
# Thoughts hold no nodes at all, and attention is even.
NOTHING = {name: 0.0 for names in DIFFERENCES.values() for name in names}
# A thought is one discrete node, the optimal one, whose edge alone is looked at, and all others are alike.
ONE_NODE = {name: 0.0 for order in ORDERS[1:] for name in DIFFERENCES[order]}
# As in the construction, nodes within reach are held alike: nearer ones exceed unreachable ones as those of the frontier do.
CONSTRUCTION = {NEARER.format(i): lambda ds, i=i: number(apart(ds, *ORDERS[1:]).sel(thought=i)) for i in (1, 2)}
# All nodes within reach exceed the others by as much as node i of the path does; all attention is on the path's edge.
ALIKE = {f"{o}, thought {i}": 0.0 for o in ORDERS[:2] for i in (1, 2)} | {
    f"{ORDERS[2]}, thought {i}": lambda ds, i=i: number(among_learners(ds.measured_gaps.sum("order"), able(ds)[1]).sel(thought=i))
    for i in (1, 2)
}
ALIKE |= {name: float(o == ORDERS[0]) for o in ORDERS for name in DIFFERENCES[o] if name.startswith("attention")}
# The shortcut is not read: thoughts hold its end as they do in the graph without it.
UNREAD = {
    HELD: lambda ds: number(among_learners(ds.measured_walk.sel(kind="as drawn", early=1), able(ds)[1])),
    LOWER: 0.0,
}
# Breadth-first search, in which a node that was passed is passed, whatever walks lead to it.
BY_DISTANCE: dict[str, Any] = {
    ABOVE: 0.0,
    LOWER: lambda ds: number(among_learners(ds.measured_walk.sel(kind="as drawn", early=2), able(ds)[1])),
}


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
    seeds=6,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2505.12514, section 5; sizes and bounds ours",
    tested=BY_COCONUT,
    plot=plot_frontier,
    caption="Mean inner product of thoughts with embeddings (above), and attention to edges, mean over heads (below): a group "
    "minus the next one, nested groups; grey: with thoughts, or attention, of other examples. A point is a run.",
)

UNTRAINED = {"networks that are not trained": {"every": 0.0}}

CLAIMS = (
    STUDY.claim(
        id="sup.trained_frontier",
        title="How far trained thoughts tell path, frontier and other nodes apart",
        statement="Group the nodes, for thought $i$, into node $i$ of the path, the nodes at distance $i$ from the root, all "
        "nodes within $i$ steps, and all others. By how much is the mean inner product of thought $i$ with a group's embeddings "
        "larger than with the next group's? By how much is the attention at step $i$ to the edge from node $i-1$ to node $i$ of "
        "the path, to edges from nodes at distance $i-1$, from nodes within $i-1$ steps, and to all others larger than to the "
        "next group?",
        talks=("practical:coc-not-interpretable", "practical:coc-same-thought", "practical:sup-sauce"),
        expected="measured",
        recorded={
            "optimal - frontier, thought 1": (0.325, 0.4288, 0.532),
            "frontier - reachable, thought 1": (1.73, 1.91, 2.09),
            "reachable - unreachable, thought 1": (1.58, 1.976, 2.37),
            "optimal - frontier, thought 2": (1.32, 1.75, 2.18),
            "frontier - reachable, thought 2": (1.82, 1.991, 2.17),
            "reachable - unreachable, thought 2": (0.115, 0.3193, 0.524),
            "attention, optimal - frontier, step 1": (0.0159, 0.02674, 0.0376),
            "attention, reachable - unreachable, step 1": (0.258, 0.2684, 0.279),
            "attention, optimal - frontier, step 2": (0.0125, 0.02782, 0.0431),
            "attention, frontier - reachable, step 2": (0.0394, 0.05255, 0.0657),
            "attention, reachable - unreachable, step 2": (0.0752, 0.08632, 0.0974),
        },
        recorded_seeds=12,  # nine networks learned
        judge=judge_frontier,
        controls={
            "thoughts and attention of other examples": jd.swap(measured_gaps="shuffled", measured_looks="looks_shuffled"),
            **UNTRAINED,
        },
        rivals={
            "thoughts hold no nodes, attention is even": jd.off(NOTHING),
            "a thought is one node": ONE_NODE,
            "thoughts hold all nodes within reach alike, and attention is on the path": ALIKE,
        },
    ),
    STUDY.claim(
        id="sup.trained_passed",
        title="Trained thoughts push down nodes that were already passed",
        statement="In every network that Coconut trained from scratch to answer at least 80% right, nodes nearer to the root than "
        "$i$ steps have smaller inner products with thought $i$ than nodes that cannot be reached in $i$ steps, by 0.2 at least on "
        "average over graphs. (In the construction they have larger ones, like all nodes within reach.)",
        talks=("practical:sup-sauce",),
        judge=judge_apart,
        controls=UNTRAINED,
        rivals={
            "thoughts hold no nodes": jd.off({NEARER.format(i): 0.0 for i in (1, 2)}),
            "all nodes within reach alike": CONSTRUCTION,
        },
        bounds=jd.tuned(on="0:4", confirmed_on="5000:5004"),
    ),
    STUDY.claim(
        id="sup.trained_walks",
        title="How a shortcut to a node shows in thoughts 1 and 2",
        statement="With one more edge, from the root to a node two steps away, this node is one step away, and a walk of two "
        "edges ends there as well. How much larger is its inner product with thought 1 than that of unreachable nodes? How "
        "often does thought 2 hold it above the other nodes one step away, as if by walks (Student's t over graphs at least 3), "
        "and how much smaller is its inner product there than without the edge?",
        talks=("practical:sup-sauce",),
        expected="measured",
        recorded={
            "inner product with thought 1, minus unreachable nodes": (2.98, 3.479, 3.97),
            "networks whose thought 2 holds the node above others one step away": (0.565, 0.8889, 0.98),
            "inner product with thought 2, without the edge minus with it": (0.214, 0.427, 0.64),
        },
        recorded_seeds=12,  # nine networks learned
        judge=judge_walks,
        rivals={
            "the shortcut is not read": jd.off(UNREAD),
            "breadth-first search": BY_DISTANCE,
            "a thought holds no node but that of its path": {HELD: 0.0},
        },
        plot=plot_walks,
        caption="Inner product of thoughts 1 and 2 with a node two steps from the root, minus the mean over unreachable nodes, "
        "in the graph as drawn and with an edge from the root to this node. A line is a run.",
    ),
    STUDY.claim(
        id="sup.trained_acc",
        title="Is Coconut ahead of training on chains of text?",
        statement="How often do networks answer right that were trained by Coconut, on chains of text, or (paper scale) on "
        "answers alone, and by how much is Coconut ahead, from the same starts? (The interval of its lead contains 0.)",
        talks=("practical:coc-table", "practical:coc-table-cot", "practical:coc-table-no-cot", "practical:coc-better-than-no-cot"),
        expected="measured",
        recorded={
            "starts from which Coconut answers at least 80% right": (0.409, 0.75, 0.929),
            "accuracy of Coconut": (0.645, 0.8076, 0.971),
            "accuracy of cot": (0.522, 0.6748, 0.828),
            "accuracy of Coconut minus that of cot": (-0.0667, 0.1328, 0.333),
        },
        recorded_seeds=8,
        seeds=4,
        judge=judge_accuracy,
        quick=jd.grid(Training, recipe=METHODS),
        paper=jd.grid(Training, recipe=[*METHODS, "no_cot"]),
        tested=f"{SETUP} Method: {{recipe}}.",
        rivals={
            "answers are a coin between the candidates": jd.off(
                {STARTS: 0.0, "accuracy of Coconut minus that of cot": 0.0}
                | {f"accuracy of {name}": 0.5 for name in ("Coconut", "cot")}
            ),
            "continuous thoughts say nothing, and chains of text all": {
                STARTS: 0.0,
                "accuracy of Coconut": 0.0,
                "accuracy of cot": 1.0,
                "accuracy of Coconut minus that of cot": -1.0,
            },
        },
        plot=plot_accuracy,
        caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
        "candidates.",
    ),
)
