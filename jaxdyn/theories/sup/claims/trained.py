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
from jaxdyn.theories.coc.learned import LEARNED, SETUP, THREE_HOPS, able
from jaxdyn.theories.coc.trials.training import ORDERS, Training, trial

__all__ = ["CLAIMS", "judge_accuracy", "judge_frontier"]

METHODS = ["coconut", "no_curriculum", "pause_as_thought", "cot", "no_cot"]  # those of coc.curriculum, whose runs these are
AHEAD = 0.2
PASSED = -0.2


def judge_frontier(ds: xr.Dataset) -> list[jd.Check]:
    """Student's t over graphs of the difference of neighbouring groups, of every network that learned, by thought."""
    gate, flags = able(ds)
    t = ds.measured_gaps_t
    least = bonferroni_z(t.sizes["seed"] * t.sizes["thought"] * t.sizes["order"], 0.998)
    each = [(order, i) for i in ds.thought.values.tolist() for order in ORDERS]
    return [
        gate,
        *(jd.at_least(f"t of {order}, thought {i}", t.sel(order=order, thought=i).where(flags), least) for order, i in each),
    ]


def judge_apart(ds: xr.Dataset) -> list[jd.Check]:
    """The last difference of disjoint groups, nearer nodes less unreachable ones, of every network that learned."""
    gate, flags = able(ds)
    last = ds.measured_apart.sel(order=ORDERS[-1]).where(flags)
    return [
        gate,
        *(jd.at_most(f"nearer less unreachable, thought {i}", last.sel(thought=i), PASSED) for i in ds.thought.values.tolist()),
    ]


def judge_accuracy(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy of Coconut less that of chains of text and of plain answers, where Coconut learned."""
    jd.need(ds, recipe=("coconut", "cot", "no_cot"))
    full = ds.measured_accuracy.sel(recipe="coconut", drop=True)
    full = full.where(full >= LEARNED)
    rest = {name: full - ds.measured_accuracy.sel(recipe=name) for name in ("cot", "no_cot")}
    return [
        jd.gate("Coconut's networks that learned the task", full.count("seed"), at_least=1),
        *(jd.at_least(f"accuracy of Coconut less that of {name}", gap, AHEAD) for name, gap in rest.items()),
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


def construction(ds: xr.Dataset) -> xr.Dataset:
    """A rival: as in the construction, a thought holds all nodes within i steps alike."""
    last = ds.order == ORDERS[-1]
    return ds.assign(measured_apart=abs(ds.measured_apart).where(last, 0.0))


def flat(ds: xr.Dataset) -> xr.Dataset:
    """A rival: thoughts hold no nodes at all."""
    return ds.assign(measured_apart=ds.measured_apart * 0)


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


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, recipe=METHODS),
    seeds=4,
    evidence="network",
    source="arXiv:2505.12514, section 5; sizes and bounds ours",
)

LOOKED = jd.looked(at="0:4", confirmed="5000:5004")

CLAIMS = (
    STUDY.claim(
        id="sup.trained_frontier",
        statement=f"In {SETUP} by Coconut, with two thoughts: are the inner products "
        r"$\langle t_i, u_v \rangle$ of thought $i$ with embeddings larger for node $i$ of the path than on average over the nodes "
        "at distance $i$ from the root, larger there than on average over all nodes within $i$ steps, and larger there than for "
        f"all others? In every network that learned the task (accuracy at least {LEARNED}) Student's t over 256 graphs is at least "
        "4.0 for five of these six differences; for the last one, nodes within two steps less all others at thought 2, the lowest "
        "of four networks is between -0.8 and 7.8 in five sets of seeds. Over three hops, with width 64, it is at least 4.0 for "
        "all nine (study of 8 networks, of which 7 learned the task).",
        expected="measured",
        judge=judge_frontier,
        quick=jd.grid(Training, recipe="coconut"),
        paper=jd.grid(Training, recipe="coconut", **THREE_HOPS),
        paper_seeds=8,
        controls={"thoughts of other examples": jd.swap(measured_gaps_t="shuffled_t")},
        rivals={"thoughts hold no nodes": nothing, "a thought is one node": one_node},
        found={
            "t of optimal - frontier, thought 1": (3, 10),
            "t of frontier - reachable, thought 1": (40, 75),
            "t of reachable - unreachable, thought 1": (20, 45),
            "t of optimal - frontier, thought 2": (9, 42),
            "t of frontier - reachable, thought 2": (25, 80),
            "t of reachable - unreachable, thought 2": (-5, 12),
        },
        plot=plot_frontier,
        caption="Mean inner product of thoughts with embeddings, a group of nodes less the next one, nested groups; grey: with "
        "thoughts of other examples. A point is a run.",
    ),
    STUDY.claim(
        id="sup.trained_passed",
        statement=f"In {SETUP} by Coconut, with two thoughts: trained thoughts are not those of the construction, which hold all "
        f"nodes within reach alike. In every network that learned the task (accuracy at least {LEARNED}), nodes nearer to the "
        "root than $i$ steps have smaller inner products with thought $i$ than nodes out of its reach, by 0.2 at least on average.",
        judge=judge_apart,
        quick=jd.grid(Training, recipe="coconut"),
        paper=jd.grid(Training, recipe="coconut", **THREE_HOPS),
        paper_seeds=8,
        controls={"groups exchanged": jd.rolled(measured_apart="order")},
        rivals={"thoughts hold no nodes": flat, "all nodes within reach alike": construction},
        bounds=LOOKED,
        plot=plot_frontier,
        caption="Mean inner product of thoughts with embeddings, a group of nodes less the next one, nested groups; grey: with "
        "thoughts of other examples. A point is a run.",
    ),
    STUDY.claim(
        id="sup.trained_acc",
        statement=f"In {SETUP}: are continuous thoughts needed? Where a network trained by Coconut answers 0.91 of all "
        "problems right, training on chains of text leaves it at 0.74, and training on answers alone at a coin between the two "
        "candidates (one network each, from one start; in eight starts at paper scale chains of text are ahead by up to 0.10).",
        expected="measured",
        judge=judge_accuracy,
        seeds=1,
        paper_seeds=8,
        controls={"accuracies of the methods exchanged": jd.rolled(measured_accuracy="recipe")},
        rivals={"all methods end alike": alike},
        found={
            "accuracy of Coconut less that of cot": (-0.12, 0.25),
            "accuracy of Coconut less that of no_cot": (0.28, 0.56),
        },
        plot=plot_accuracy,
        caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
        "candidates.",
    ),
)
