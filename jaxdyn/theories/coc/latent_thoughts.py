"""Thoughts of networks trained by Coconut: what answers lose without them, what they follow, and how open they leave a node."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import bonferroni_z
from jaxdyn.theories.coc.training import AMONG, BY_COCONUT, EDITS, THREE_HOPS, Training, able, among_learners, trial

LOST, LOST_TO_NOISE, DROP, FOLLOW = 0.2, 0.1, 0.3, 0.7
LEVEL = 0.997
READ = 0.95  # level of the interval of each reading
CHANGED = {
    "another's": "of another example",
    "noise": "replaced by noise",
    "left out": "left out",
}
ABLATED = "accuracy lost, thoughts {}"


def lost(ds: xr.Dataset, way: str) -> xr.DataArray:
    """Accuracy with thoughts minus that with other inputs in their place, of networks that learned."""
    gap = ds.measured_ablated.sel(way="kept", drop=True) - ds.measured_ablated.sel(way=way, drop=True)
    return among_learners(gap, able(ds)[1])


def judge_ablation(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy with thoughts minus that with other inputs in their place, of every network that learned, with its interval.

    The interval is that of a paired difference over graphs, for all networks and ways together.
    """

    def check(way: str, what: str) -> jd.Check:
        gap = lost(ds, way)

        def ends(level: float) -> tuple[xr.DataArray, xr.DataArray]:
            half = bonferroni_z(ds.sizes["seed"], level) * ds.measured_lost_error.sel(way=way, drop=True)
            return gap - half, gap + half

        least = LOST_TO_NOISE if way == "noise" else LOST
        level = 1 - (1 - LEVEL) / len(CHANGED)
        return jd.interval_within(ABLATED.format(what), gap, ends, low=least, level=level)

    return [able(ds)[0], *(check(way, what) for way, what in CHANGED.items())]


def judge_order(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Accuracy lost with the network's own thoughts in each other's places, mean over networks that learned."""
    return [able(ds)[0], jd.mean_reading(EXCHANGED, lost(ds, "places exchanged"), over="seed", level=READ)]


EXCHANGED = "accuracy lost, thoughts in each other's places"


def judge_count(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy by the number of thoughts at inference, of every network that learned."""
    gate, flags = able(ds)
    answered = among_learners(ds.measured_answered, flags)
    full = answered.isel(inputs=-1, drop=True)
    fewer = ds.inputs.values[:-1].tolist()
    return [gate, *(jd.at_least(with_only(j), full - answered.sel(inputs=j), DROP) for j in fewer)]


def with_only(count: int) -> str:
    """The name of a check."""
    return f"accuracy lost with {count} thought{'' if count == 1 else 's'}"


FOLLOWS = "answers that follow, edge {}"


def judge_edit(ds: xr.Dataset) -> list[jd.Check]:
    """Answers that follow edits of the graph, of every network that learned."""
    gate, flags = able(ds)
    edited = among_learners(ds.measured_edited, flags)
    return [gate, *(jd.at_least(FOLLOWS.format(e), edited.sel(edit=e), FOLLOW) for e in ds.edit.values.tolist())]


FALL = "fall of entropy among {} (nats)"


def judge_entropy(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """The fall of entropy from thought 1 to 2 among the nodes at their distance: mean over networks that learned."""
    gate, flags = able(ds)
    fall = among_learners(ds.measured_fall, flags).sel(among=AMONG[0])
    return [gate, jd.mean_reading(FALL.format(AMONG[0]), fall, over="seed", level=READ)]


# The answer is the same without thoughts.
USELESS = {ABLATED.format(what): 0.0 for what in CHANGED.values()}
# Only the number of inputs counts, and any content serves.
TIME_ALONE = {ABLATED.format(CHANGED[way]): 0.0 for way in ("another's", "noise")}
# The pause token is fed in place of every thought that is not changed.
PAUSED = jd.swap(
    measured_ablated=lambda ds: ds.measured_ablated.where(ds.way != "kept", ds.measured_ablated.sel(way="pause", drop=True))
)
# The answer does not depend on the graph, and stays as it was before the edit: what was wrong is right then.
UNEDITED = {FOLLOWS.format(e): lambda ds: float(wrong(ds).max()) for e in EDITS}


def wrong(ds: xr.Dataset) -> xr.DataArray:
    """Share of wrong answers, of networks that learned."""
    return among_learners(1 - ds.measured_ablated.sel(way="kept", drop=True), able(ds)[1])


def plot_entropy(ds: xr.Dataset, fig: Figure) -> None:
    """Entropy of the values of thoughts, among nodes at their distance and among all names: one line per run."""
    axes = fig.subplots(1, 2, sharey=True)
    recipes = ds.recipe.values.tolist() if "recipe" in ds.dims else [None]
    panels = ("open", "thought", "nodes at its distance"), ("entropy", "inputs", "all names")
    for ax, (name, dim, label) in zip(axes, panels, strict=True):
        for recipe, color in zip(recipes, ("measured", "control"), strict=False):
            part = ds[f"measured_{name}"] if recipe is None else ds[f"measured_{name}"].sel(recipe=recipe)
            values = part.transpose(..., dim).values.reshape(-1, ds.sizes[dim])[:, : ds.sizes["thought"]]
            ax.plot(ds.thought.values, values.T, "o-", color=plotting.COLORS[color], alpha=0.6)
            if ax is axes[0]:
                ax.plot([], [], "o-", color=plotting.COLORS[color], label={"cot": "chains of text"}.get(recipe, "Coconut"))
        ax.set(title=f"among {label}", xlabel="thought", xticks=ds.thought.values)
    axes[0].set(ylabel="entropy of values (nats)")


def plot_bars(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy with thoughts unchanged and changed, by number of thoughts, and after edits: one point per run."""
    axes = fig.subplots(1, 3, sharey=True, width_ratios=(2, 1.2, 1))
    for ax, (name, dim, label) in zip(
        axes,
        (
            ("measured_ablated", "way", "thoughts"),
            ("measured_answered", "inputs", "number of thoughts"),
            ("measured_edited", "edit", "edit of the graph"),
        ),
        strict=True,
    ):
        values = ds[name].transpose(..., dim).values.reshape(-1, ds.sizes[dim])
        for at, column in enumerate(values.T):
            ax.plot(np.full(column.size, at), column, "o", color=plotting.COLORS["measured"], alpha=0.6)
        ax.set_xticks(range(values.shape[1]), [str(v) for v in ds[dim].values], rotation=30, ha="right", rotation_mode="anchor")
        ax.set(xlabel=label, ylim=(-0.03, 1.03), xlim=(-0.4, values.shape[1] - 0.6))
    axes[0].set(ylabel="right answers")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, recipe="coconut"),
    paper=jd.grid(Training, recipe="coconut", **THREE_HOPS),
    seeds=4,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2412.06769, sections 4 and 5; ablations and edits ours",
    tested=BY_COCONUT,
    plot=plot_bars,
    caption="Share of right answers with thoughts unchanged, changed or left out; by the number of thoughts; and after edits of "
    "the graph. A point is a run.",
)

TUNED = jd.tuned(on="0:4", confirmed_on="5000:5004")

CLAIMS = (
    STUDY.claim(
        id="coc.latent_ablation",
        title="Answers are lost when continuous thoughts are left out or replaced",
        statement="Every decoder of two layers that Coconut has trained from scratch on paths of two or three steps, and that "
        "answers four fifths right, loses at least 20% of all answers if its thoughts are left out or taken from another "
        "problem, and at least 10% if they are replaced by noise of the same length.",
        talks=("practical:coc-figure-method",),
        judge=judge_ablation,
        controls={
            "ways exchanged": jd.Control(jd.rolled(measured_ablated="way"), breaks="replaced by noise"),
            "the pause token is fed for every thought": PAUSED,
        },
        rivals={"the answer does not need thoughts": jd.off(USELESS), "any content serves": TIME_ALONE},
        bounds=jd.tuned(on="95000000:95000004", confirmed_on="96000000:96000004"),
    ),
    STUDY.claim(
        id="coc.latent_order",
        title="How many answers are lost when two thoughts change places",
        statement="How many of all answers does a network that Coconut has trained from scratch on paths of two steps lose, on "
        "average over those that answer four fifths right, if its own two thoughts are fed in each other's places? (Networks "
        "differ widely.)",
        expected="measured",
        seeds=8,
        recorded={
            "accuracy lost, thoughts in each other's places": (0.128, 0.3294, 0.531),
        },
        judge=judge_order,
        rivals={
            "the place of a thought does not matter": jd.off({EXCHANGED: 0.0}),
            "in the wrong place a thought is worth nothing": {EXCHANGED: lambda ds: float(lost(ds, "left out").mean())},
        },
    ),
    STUDY.claim(
        id="coc.thoughts_inference",
        title="A network trained by Coconut needs a thought for each step of the path",
        statement="Every decoder of two layers that Coconut has trained from scratch on paths of two or three steps, and that "
        "answers four fifths right, needs as many thoughts at inference as the path has steps: with fewer it loses at least 30% "
        "of all answers.",
        talks=("practical:coc-two-thoughts", "practical:coc-figure-outcomes"),
        judge=judge_count,
        controls={"numbers of thoughts exchanged": jd.rolled(measured_answered="inputs")},
        rivals={"the answer does not need thoughts": jd.off({with_only(j): 0.0 for j in (0, 1)})},
        bounds=TUNED,
    ),
    STUDY.claim(
        id="coc.edit",
        title="The answer follows an edit of the graph",
        statement="If the graph is edited so that the other candidate is right, every decoder of two layers that Coconut has "
        "trained from scratch on paths of two or three steps, and that answered four fifths right before, gives the new answer "
        "on at least 70% of the graphs. There are two edits: the edge into the target leads to the other candidate instead, or "
        "the candidates exchange their parents.",
        judge=judge_edit,
        controls={"right candidates exchanged": jd.swap(measured_edited=lambda ds: 1 - ds.measured_edited)},
        rivals={
            "the answer stays as it was": jd.off(UNEDITED),
            "a coin between the candidates": {FOLLOWS.format(e): 0.5 for e in EDITS},
        },
        bounds=TUNED,
    ),
    STUDY.claim(
        id="coc.parallelism",
        title="How far the entropy of the next node falls from thought 1 to thought 2",
        statement="How far does the entropy of the next node's probabilities fall from thought 1 to thought 2, among the nodes "
        "at the distance of the thought, on average over networks that Coconut has trained from scratch on paths of two steps and "
        "that answer four fifths right?",
        talks=("practical:coc-same-thought", "practical:coc-figure-inside"),
        expected="measured",
        recorded={
            "fall of entropy among nodes at this distance (nats)": (0.174, 0.2438, 0.314),
        },
        seeds=8,
        judge=judge_entropy,
        rivals={
            "the second thought is as open as the first": jd.off({FALL.format(AMONG[0]): 0.0}),
            "an even choice of two becomes a certain one": {FALL.format(AMONG[0]): float(np.log(2))},
        },
        plot=plot_entropy,
        caption="Entropy of the values that thoughts give to nodes. A line is a run.",
    ),
)
