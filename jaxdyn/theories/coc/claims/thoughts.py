"""Claims on the thoughts of networks trained by Coconut: what answers lose without them, and what they follow."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.coc.learned import LEARNED, THREE_HOPS, able
from jaxdyn.theories.coc.trials.training import Training, trial

__all__ = ["CLAIMS", "judge_ablation", "judge_count", "judge_edit", "judge_entropy"]

WHICH = f"every network that learned the task (accuracy at least {LEARNED})"
SETUP = (
    "two-layer decoders of width 32 trained from scratch by Coconut on balanced reachability problems (two families of five nodes, "
    "candidates two steps from their roots, random names; two thoughts)"
)
LOST = 0.3
LEAST = 0.05  # nats


def judge_ablation(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy with thoughts less that with other inputs in their place, of every network that learned."""
    gate, flags = able(ds)
    ds = ds.where(flags)
    kept = ds.measured_ablated.sel(way="kept", drop=True)
    ways = {"another's": "of another example", "noise": "replaced by noise", "left out": "left out"}
    return [
        gate,
        *(
            jd.at_least(f"accuracy lost, thoughts {words}", kept - ds.measured_ablated.sel(way=w), LOST)
            for w, words in ways.items()
        ),
    ]


def judge_count(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy by the number of thoughts at inference, of every network that learned."""
    gate, flags = able(ds)
    ds = ds.where(flags)
    full = ds.measured_answered.isel(inputs=-1, drop=True)
    fewer = ds.inputs.values[:-1].tolist()
    return [
        gate,
        *(
            jd.at_least(f"accuracy lost with {j} thought{'' if j == 1 else 's'}", full - ds.measured_answered.sel(inputs=j), LOST)
            for j in fewer
        ),
    ]


def judge_edit(ds: xr.Dataset) -> list[jd.Check]:
    """Answers that follow edits of the graph, of every network that learned."""
    gate, flags = able(ds)
    ds = ds.where(flags)
    edits = ds.edit.values.tolist()
    return [gate, *(jd.at_least(f"answers that follow, edge {e}", ds.measured_edited.sel(edit=e), 0.7) for e in edits)]


def judge_entropy(ds: xr.Dataset) -> list[jd.Check]:
    """Entropy of the next node: before the first thought less after it, of every network that learned."""
    gate, flags = able(ds)
    ds = ds.where(flags)
    drop = ds.measured_entropy.isel(inputs=0, drop=True) - ds.measured_entropy.isel(inputs=1, drop=True)
    return [gate, jd.at_least("entropy of the next node, less that after one thought (nats)", drop, LEAST)]


def useless(ds: xr.Dataset) -> xr.Dataset:
    """A rival: thoughts are passed over, and the answer is the same without them."""
    none = ds.measured_answered.isel(inputs=0, drop=True)
    return ds.assign(
        measured_ablated=none.broadcast_like(ds.measured_ablated).transpose(*ds.measured_ablated.dims),
        measured_answered=none.broadcast_like(ds.measured_answered).transpose(*ds.measured_answered.dims),
    )


def time_alone(ds: xr.Dataset) -> xr.Dataset:
    """A rival: only the number of inputs counts, and any content serves."""
    kept = ds.measured_ablated.sel(way="kept", drop=True)
    same = kept.broadcast_like(ds.measured_ablated).transpose(*ds.measured_ablated.dims)
    return ds.assign(measured_ablated=same)


def paused(ds: xr.Dataset) -> xr.Dataset:
    """A control: the same networks, with the pause token in the place of every thought they keep."""
    pause = ds.measured_ablated.sel(way="pause", drop=True)
    return ds.assign(measured_ablated=ds.measured_ablated.where(ds.way != "kept", pause))


def unmoved(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the answer does not look at the graph, and stays as it was before the edit."""
    before = 1 - ds.measured_ablated.sel(way="kept", drop=True)
    return ds.assign(measured_edited=before.broadcast_like(ds.measured_edited).transpose(*ds.measured_edited.dims))


def level(ds: xr.Dataset) -> xr.Dataset:
    """A rival: a thought changes nothing in how open the next node is."""
    first = ds.measured_entropy.isel(inputs=0, drop=True)
    return ds.assign(measured_entropy=first.broadcast_like(ds.measured_entropy).transpose(*ds.measured_entropy.dims))


def plot_bars(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy with thoughts kept and changed, by number of thoughts, and after edits: a point a run."""
    axes = fig.subplots(1, 3, sharey=True)
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
        ax.set_xticks(range(values.shape[1]), [str(v) for v in ds[dim].values], rotation=20)
        ax.set(xlabel=label, ylim=(-0.03, 1.03))
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
    caption="Share of right answers with thoughts kept, changed or left out; by the number of thoughts; and after edits of the "
    "graph. A point is a run. (Of 8 networks, on two sets of seeds, 7 learned the task.)",
)

LOOKED = jd.looked(at="0:4", confirmed="5000:5004")

CLAIMS = (
    STUDY.claim(
        id="coc.latent_ablation",
        statement=f"In {SETUP}, {WHICH} loses at least 0.3 of all answers if "
        "its thoughts are left out, replaced by noise of their size, or taken from another example.",
        judge=judge_ablation,
        controls={"ways exchanged": jd.rolled(measured_ablated="way"), "the pause token is fed for every thought": paused},
        rivals={"thoughts are passed over": useless, "any content serves": time_alone},
        bounds=LOOKED,
    ),
    STUDY.claim(
        id="coc.thoughts_inference",
        statement=f"In {SETUP}, {WHICH} needs as many thoughts as the path has "
        "steps: with none or one at inference it loses at least 0.3 of all answers.",
        judge=judge_count,
        controls={"numbers of thoughts exchanged": jd.rolled(measured_answered="inputs")},
        rivals={"thoughts are passed over": useless},
        bounds=LOOKED,
    ),
    STUDY.claim(
        id="coc.edit",
        statement=f"In {SETUP}, {WHICH} follows edits of the graph after which "
        "the other candidate is right, in at least 0.7 of all graphs: the edge into the target leads to the other candidate "
        "instead, or the candidates exchange their parents.",
        judge=judge_edit,
        controls={"right candidates exchanged": lambda ds: ds.assign(measured_edited=1 - ds.measured_edited)},
        rivals={"the answer stays as it was": unmoved},
        bounds=LOOKED,
    ),
    STUDY.claim(
        id="coc.parallelism",
        statement=f"In {SETUP}: is {WHICH} less sure of the next node before its first thought than after one thought? Not in "
        "all networks: the entropy of the next node, among all names, before less that after one thought, is as low as -0.27 to "
        "-0.56 nats (the lowest of four networks, in four sets of seeds).",
        expected="measured",
        judge=judge_entropy,
        rivals={"thoughts change nothing": level},
        found={"entropy of the next node, less that after one thought (nats)": (-0.75, -0.1)},
    ),
)
