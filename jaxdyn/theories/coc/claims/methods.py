"""Claims on methods: what the curriculum, thoughts and their feedback are worth in training from scratch."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.coc.learned import LEARNED, SETUP
from jaxdyn.theories.coc.model import METHODS
from jaxdyn.theories.coc.trials.training import Training, trial

__all__ = ["CLAIMS", "COMPARED", "judge_curriculum"]

COMPARED = ["coconut", "no_curriculum", "pause_as_thought", "cot", "no_cot"]
ABLATIONS = ("no_curriculum", "pause_as_thought", "pause", "no_thoughts", "icot", "no_cot")
LEAST = 0.2


def judge_curriculum(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy of Coconut less that of what lacks a part of it, run by run from the same start, where Coconut learned."""
    jd.need(ds, recipe=("coconut", "no_curriculum", "pause_as_thought"))
    full = ds.measured_accuracy.sel(recipe="coconut", drop=True)
    full = full.where(full >= LEARNED)
    trained = [name for name in ABLATIONS if name in ds.recipe]
    rest = {name: full - ds.measured_accuracy.sel(recipe=name) for name in trained}
    return [
        jd.gate("Coconut's networks that learned the task", full.count("seed"), at_least=1),
        *(jd.at_least(f"accuracy of Coconut less that of {name}", gap, LEAST) for name, gap in rest.items()),
    ]


def alike(ds: xr.Dataset) -> xr.Dataset:
    """A rival: what is fed and the curriculum do not matter, all methods end alike."""
    mean = ds.measured_accuracy.mean("recipe")
    return ds.assign(measured_accuracy=mean.broadcast_like(ds.measured_accuracy).transpose(*ds.measured_accuracy.dims))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy by method: every run."""
    ax = fig.subplots()
    names = [str(m) for m in ds.recipe.values]
    for at, name in enumerate(names):
        values = ds.measured_accuracy.sel(recipe=name).values.ravel()
        ax.plot([at] * values.size, values, "o", color=plotting.COLORS["measured"], alpha=0.6)
    ax.axhline(0.5, linestyle="--", color=plotting.COLORS["theory"])
    ax.set_xticks(range(len(names)), [n.replace("_", " ") for n in names], rotation=20)
    ax.set(ylabel="accuracy", ylim=(-0.03, 1.03))


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Training, recipe=COMPARED),
    paper=jd.grid(Training, recipe=list(METHODS)),
    seeds=1,
    paper_seeds=4,
    evidence="network",
    source="arXiv:2412.06769, table 1 and section 4 (methods); arXiv:2505.12514, section 5 (from scratch); sizes and bounds ours",
    rivals={"all methods end alike": alike},
    plot=plot,
    caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
    "candidates.",
)

CLAIMS = (
    STUDY.claim(
        id="coc.curriculum",
        statement=f"In {SETUP}: what are the curriculum and thoughts worth? Where a network trained by Coconut answers 0.91 of "
        "all problems right, the same training without the curriculum (the last stage from the start), or with a pause token in "
        "the place of thoughts, or without a chain at all, leaves it at a coin between the two candidates (one network each, from "
        "one start; the study at paper scale has all methods of the published table and four starts).",
        expected="measured",
        judge=judge_curriculum,
        controls={"accuracies of the methods exchanged": jd.rolled(measured_accuracy="recipe")},
        found={
            "accuracy of Coconut less that of no_curriculum": (0.28, 0.56),
            "accuracy of Coconut less that of pause_as_thought": (0.28, 0.56),
            "accuracy of Coconut less that of no_cot": (0.28, 0.56),
        },
    ),
)
