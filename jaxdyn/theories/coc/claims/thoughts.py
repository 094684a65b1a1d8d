"""Claims on the thoughts of networks trained by Coconut: what answers lose without them, and what they follow."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.coc.trials.training import Training, trial

__all__ = ["CLAIMS", "judge_ablation", "judge_count", "judge_edit", "judge_entropy"]

SETUP = (
    "two-layer decoders of width 32 trained from scratch by Coconut on balanced reachability problems (two families of five nodes, "
    "candidates two steps from their roots, random names; two thoughts)"
)
LOST = 0.3
LEAST = 0.05  # nats


def learned(ds: xr.Dataset) -> jd.Check:
    """The gate: the network answers with all its thoughts."""
    return jd.gate("accuracy with all thoughts, mean over runs", ds.measured_answered.isel(inputs=-1).mean("seed"), at_least=0.8)


def judge_ablation(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy with thoughts less that with other inputs in their place, paired by seed."""
    kept = ds.measured_ablated.sel(way="kept", drop=True)
    ways = {"another's": "of another example", "noise": "replaced by noise", "left out": "left out"}
    return [
        learned(ds),
        *(
            jd.mean_within(f"accuracy lost by thoughts {words}", kept - ds.measured_ablated.sel(way=way), over="seed", low=LOST)
            for way, words in ways.items()
        ),
    ]


def judge_count(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy by the number of thoughts at inference."""
    full = ds.measured_answered.isel(inputs=-1, drop=True)
    return [
        learned(ds),
        *(
            jd.mean_within(
                f"accuracy lost with {j} of all thoughts", full - ds.measured_answered.sel(inputs=j), over="seed", low=LOST
            )
            for j in ds.inputs.values[:-1].tolist()
        ),
    ]


def judge_edit(ds: xr.Dataset) -> list[jd.Check]:
    """Answers that follow edits of the graph."""
    return [
        learned(ds),
        *(
            jd.mean_within(f"answers that follow, edges {edit}", ds.measured_edited.sel(edit=edit), over="seed", low=0.5)
            for edit in ds.edit.values.tolist()
        ),
    ]


def judge_entropy(ds: xr.Dataset) -> list[jd.Check]:
    """Entropy of the next node: before the first thought less after it."""
    drop = ds.measured_entropy.isel(inputs=0) - ds.measured_entropy.isel(inputs=1)
    return [
        learned(ds),
        jd.mean_within("entropy of the next node, less that after one thought (nats)", drop, over="seed", low=LEAST),
    ]


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
    paper=jd.grid(Training, recipe="coconut", hops=3, width=128, heads=4, hidden=256, lr=1e-3, every=1000.0, samples=40, batch=128),
    seeds=4,
    paper_seeds=4,
    evidence="network",
    source="arXiv:2412.06769, sections 4 and 5; ablations and edits ours",
    plot=plot_bars,
    caption="Share of right answers with thoughts kept, changed or left out; by the number of thoughts; and after edits of the "
    "graph. A point is a run.",
)

CLAIMS = (
    STUDY.claim(
        id="coc.latent_ablation",
        statement=f"In {SETUP}, at least 0.3 of all answers are lost if thoughts are left out, replaced by noise of their size, or "
        "taken from another example.",
        judge=judge_ablation,
        controls={"trained with a pause token as thought": {"recipe": "pause_as_thought"}},
        rivals={"thoughts are passed over": useless, "any content serves": time_alone},
        bounds="derived",
    ),
    STUDY.claim(
        id="coc.thoughts_inference",
        statement=f"In {SETUP}, answers need as many thoughts as the path has steps: with fewer, at least 0.3 of all answers are "
        "lost.",
        judge=judge_count,
        controls={"not trained": {"every": 0.0}},
        rivals={"thoughts are passed over": useless},
        bounds="derived",
    ),
    STUDY.claim(
        id="coc.edit",
        statement=f"In {SETUP}, most answers follow an edit of the graph after which the other candidate is right: one edge led to "
        "the other candidate, or the candidates' parents exchanged.",
        judge=judge_edit,
        controls={"not trained": {"every": 0.0}},
        rivals={"the answer stays as it was": unmoved},
        bounds="derived",
    ),
    STUDY.claim(
        id="coc.parallelism",
        statement=f"In {SETUP}, the next node is more open before the first thought than after it: its entropy among all names is "
        "larger.",
        judge=judge_entropy,
        controls={"numbers of thoughts exchanged": jd.rolled(measured_entropy="inputs")},
        rivals={"thoughts change nothing": level},
        bounds="derived",
    ),
)
