"""Thoughts of networks trained by Coconut: what answers lose without them, what they follow, and how open they leave a node."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import bonferroni_z
from jaxdyn.theories.coc.learned import LEARNED, THREE_HOPS, able, among_learners
from jaxdyn.theories.coc.training import AMONG, Training, trial

__all__ = ["CLAIMS", "judge_ablation", "judge_count", "judge_edit", "judge_entropy", "judge_forced", "judge_order"]

WHICH = f"every network that learned the task (accuracy at least {LEARNED})"
SETUP = (
    "two-layer decoders of width 32 trained from scratch by Coconut on balanced reachability problems (two families of five nodes, "
    "candidates two steps from their roots, random names; two thoughts)"
)
LOST, LOST_TO_NOISE, DROP = 0.2, 0.1, 0.3
LEVEL = 0.997
LEAST = 0.05  # nats
CHANGED = {
    "another's": "of another example",
    "noise": "replaced by noise",
    "left out": "left out",
}


def judge_ablation(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy with thoughts minus that with other inputs in their place, of every network that learned, with its interval.

    The interval is that of a paired difference over graphs, for all networks and ways together.
    """
    gate, flags = able(ds)
    full = ds.measured_ablated.sel(way="kept", drop=True)
    z = bonferroni_z(ds.sizes["seed"] * len(CHANGED), LEVEL)

    def check(way: str, what: str) -> jd.Check:
        lost = among_learners(full - ds.measured_ablated.sel(way=way), flags)
        half = z * ds.measured_lost_error.sel(way=way)
        least = LOST_TO_NOISE if way == "noise" else LOST
        return jd.interval_within(f"accuracy lost, thoughts {what}", lost, (lost - half, lost + half), low=least)

    return [gate, *(check(way, what) for way, what in CHANGED.items())]


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy lost with the network's own thoughts in each other's places, mean over networks that learned."""
    gate, flags = able(ds)
    lost = among_learners(ds.measured_ablated.sel(way="kept", drop=True) - ds.measured_ablated.sel(way="places exchanged"), flags)
    return [gate, jd.mean_within("accuracy lost, thoughts in each other's places", lost, over="seed", low=LOST, level=0.95)]


def judge_count(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy by the number of thoughts at inference, of every network that learned."""
    gate, flags = able(ds)
    answered = among_learners(ds.measured_answered, flags)
    full = answered.isel(inputs=-1, drop=True)
    fewer = ds.inputs.values[:-1].tolist()
    return [
        gate,
        *(
            jd.at_least(f"accuracy lost with {j} thought{'' if j == 1 else 's'}", full - answered.sel(inputs=j), DROP)
            for j in fewer
        ),
    ]


def judge_edit(ds: xr.Dataset) -> list[jd.Check]:
    """Answers that follow edits of the graph, of every network that learned."""
    gate, flags = able(ds)
    edited = among_learners(ds.measured_edited, flags)
    return [gate, *(jd.at_least(f"answers that follow, edge {e}", edited.sel(edit=e), 0.7) for e in ds.edit.values.tolist())]


def judge_entropy(ds: xr.Dataset) -> list[jd.Check]:
    """The fall of entropy from thought 1 to 2, in nats and as paired Student's t over graphs: means over networks that learned."""
    gate, flags = able(ds)
    fall, t = among_learners(ds.measured_fall, flags), among_learners(ds.measured_fall_t, flags)
    least = bonferroni_z(fall.size, LEVEL)
    return [
        gate,
        *(
            check
            for a in AMONG
            for check in (
                jd.mean_within(f"fall of entropy among {a} (nats)", fall.sel(among=a), over="seed", low=LEAST, level=0.975),
                jd.mean_within(f"t of the fall among {a}, mean over networks", t.sel(among=a), over="seed", low=least, level=0.975),
            )
        ),
    ]


def judge_forced(ds: xr.Dataset) -> list[jd.Check]:
    """The fall of entropy in networks trained by Coconut minus that in networks trained on text, which are fed hidden states."""
    jd.need(ds, recipe=("coconut", "cot"))
    gate, flags = able(ds.sel(recipe="coconut", drop=True))
    gap = among_learners(ds.measured_fall.sel(recipe="coconut") - ds.measured_fall.sel(recipe="cot"), flags)
    name = "fall of entropy among {}, Coconut minus chains of text (nats)"
    return [gate, *(jd.mean_within(name.format(a), gap.sel(among=a), over="seed", low=LEAST, level=0.975) for a in AMONG)]


# The answer is the same without thoughts.
USELESS = jd.swap(
    measured_ablated=lambda ds: ds.measured_answered.isel(inputs=0, drop=True),
    measured_answered=lambda ds: ds.measured_answered.isel(inputs=0, drop=True),
)
# Only the number of inputs counts, and any content serves.
TIME_ALONE = jd.swap(measured_ablated=lambda ds: ds.measured_ablated.sel(way="kept", drop=True))
# The pause token is fed in place of every thought that is not changed.
PAUSED = jd.swap(
    measured_ablated=lambda ds: ds.measured_ablated.where(ds.way != "kept", ds.measured_ablated.sel(way="pause", drop=True))
)
# The answer does not depend on the graph, and stays as it was before the edit.
UNEDITED = jd.swap(measured_edited=lambda ds: 1 - ds.measured_ablated.sel(way="kept", drop=True))
# A thought changes nothing in how open the next node is.
FLAT = jd.scaled(measured_fall=0.0, measured_fall_t=0.0)


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
    plot=plot_bars,
    caption="Share of right answers with thoughts unchanged, changed or left out; by the number of thoughts; and after edits of "
    "the graph. A point is a run. (Of 12 networks, seeds 0 to 7 and four fresh ones, 8 learned the task.)",
)

LOOKED = jd.looked(at="0:4", confirmed="5000:5004")

CLAIMS = (
    STUDY.claim(
        id="coc.latent_ablation",
        statement=f"In {SETUP}, {WHICH} loses at least 0.2 of all answers if "
        "its thoughts are left out or taken from another example, and 0.1 if they are replaced by noise of their size (with an "
        "interval over graphs).",
        judge=judge_ablation,
        controls={"ways exchanged": jd.rolled(measured_ablated="way"), "the pause token is fed for every thought": PAUSED},
        rivals={"thoughts are passed over": USELESS, "any content serves": TIME_ALONE},
        bounds=jd.looked(at="95000000:95000004", confirmed="96000000:96000004"),
    ),
    STUDY.claim(
        id="coc.latent_order",
        statement=f"In {SETUP}: how many of all answers does a network that learned the task (accuracy at least {LEARNED}) lose if "
        "its own two thoughts are fed in each other's places (mean over networks, with its 95% interval)?",
        expected="measured",
        judge=judge_order,
        rivals={"thoughts are passed over": USELESS, "any order serves": TIME_ALONE},
        found={"accuracy lost, thoughts in each other's places": (0.0, 0.6)},
    ),
    STUDY.claim(
        id="coc.thoughts_inference",
        statement=f"In {SETUP}, {WHICH} needs as many thoughts as the path has "
        "steps: with none or one at inference it loses at least 0.3 of all answers.",
        judge=judge_count,
        controls={"numbers of thoughts exchanged": jd.rolled(measured_answered="inputs")},
        rivals={"thoughts are passed over": USELESS},
        bounds=LOOKED,
    ),
    STUDY.claim(
        id="coc.edit",
        statement=f"In {SETUP}, {WHICH} follows edits of the graph after which "
        "the other candidate is right, in at least 0.7 of all graphs: the edge into the target leads to the other candidate "
        "instead, or the candidates exchange their parents.",
        judge=judge_edit,
        controls={"right candidates exchanged": jd.swap(measured_edited=lambda ds: 1 - ds.measured_edited)},
        rivals={"the answer stays as it was": UNEDITED},
        bounds=LOOKED,
    ),
    STUDY.claim(
        id="coc.parallelism",
        statement=f"In {SETUP}: does thought 1 keep more nodes in view than thought 2? The value of a node is its share of the "
        "next token's probability. Judged is the entropy of values at thought 1 minus that at thought 2, among the nodes at their "
        f"distance and among all names: its mean over networks that learned the task (accuracy at least {LEARNED}), and the mean "
        "of each network's Student t over 256 graphs, with 95% intervals. (Of eight networks the t among nodes at their distance "
        "was between 1.5 and 18.5, that among all names between -15 and 7.)",
        expected="measured",
        judge=judge_entropy,
        rivals={"thoughts change nothing": FLAT},
        found={
            f"fall of entropy among {AMONG[0]} (nats)": (0.15, 0.4),
            f"t of the fall among {AMONG[0]}, mean over networks": (8, 19),
            f"fall of entropy among {AMONG[1]} (nats)": (-0.3, 0.4),
            f"t of the fall among {AMONG[1]}, mean over networks": (-9, 6),
        },
        plot=plot_entropy,
        caption="Entropy of the values that thoughts give to nodes. A line is a run.",
    ),
    STUDY.claim(
        id="coc.parallelism_forced",
        statement=f"In {SETUP}: is the fall of entropy from thought 1 to thought 2 the work of training with thoughts? From the "
        "same starts, networks are trained on chains of text, and fed their own hidden states as well. Judged is the fall in "
        "networks trained by Coconut minus that in these, mean over the starts from which Coconut learned the task (accuracy at "
        f"least {LEARNED}), with 95% intervals.",
        expected="measured",
        judge=judge_forced,
        quick=jd.grid(Training, recipe=["coconut", "cot"]),
        paper=jd.grid(Training, recipe=["coconut", "cot"]),
        rivals={"thoughts change nothing": FLAT},
        found={
            f"fall of entropy among {AMONG[0]}, Coconut minus chains of text (nats)": (-0.05, 0.4),
            f"fall of entropy among {AMONG[1]}, Coconut minus chains of text (nats)": (-0.3, 0.6),
        },
        plot=plot_entropy,
        caption="Entropy of the values that thoughts give to nodes, hidden states being fed to both. A line is a run.",
    ),
)
