"""What the curriculum, thoughts and their feedback are worth in training from scratch: the methods compared."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.coc.learned import LEARNED, SETUP, among_learners
from jaxdyn.theories.coc.model import METHODS
from jaxdyn.theories.coc.training import Training, trial

__all__ = ["CLAIMS", "COMPARED", "judge_curriculum"]

COMPARED = ["coconut", "no_curriculum"]
ABLATIONS = ("no_curriculum", "pause_as_thought", "pause", "no_thoughts", "icot", "no_cot")
CURRICULUM = ("pause_as_thought", "no_thoughts", "icot")  # published: ahead of training without a curriculum, by 19 to 22 points
AHEAD, LEAST = 0.2, 0.1
LEVEL = 0.95


def judge_curriculum(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy of Coconut minus that of what lacks a part of it, and of methods with the curriculum minus that without.

    Means over the starts from which Coconut learned, and over all starts.
    """
    jd.need(ds, recipe=("coconut", "no_curriculum"))
    full = ds.measured_accuracy.sel(recipe="coconut", drop=True)
    flags = full >= LEARNED
    least = ds.measured_accuracy.sel(recipe="no_curriculum", drop=True)
    ahead = {name: among_learners(full - ds.measured_accuracy.sel(recipe=name), flags) for name in ABLATIONS if name in ds.recipe}
    order = {name: ds.measured_accuracy.sel(recipe=name) - least for name in CURRICULUM if name in ds.recipe}

    def check(name: str, gap: xr.DataArray, low: float) -> jd.Check:
        return jd.mean_within(name, gap, over="seed", low=low, level=level(len(ahead) + len(order)))

    return [
        jd.gate("Coconut's networks that learned the task", flags.sum("seed"), at_least=2),
        *(check(f"accuracy of Coconut minus that of {name}", gap, AHEAD) for name, gap in ahead.items()),
        *(check(f"accuracy of {name} minus that of no_curriculum", gap, LEAST) for name, gap in order.items()),
    ]


def level(count: int) -> float:
    """Of each of so many intervals, for all to hold together."""
    return 1 - (1 - LEVEL) / count


def exchanged(ds: xr.Dataset) -> xr.DataArray:
    """Accuracies with Coconut and training without the curriculum in each other's places."""
    names = {"coconut": "no_curriculum", "no_curriculum": "coconut"}
    other = ds.measured_accuracy.sel(recipe=[names.get(str(name), str(name)) for name in ds.recipe.values])
    return other.assign_coords(recipe=ds.recipe)


EXCHANGED = jd.swap(measured_accuracy=exchanged)
ALIKE = jd.swap(measured_accuracy=lambda ds: ds.measured_accuracy.mean("recipe"))  # what is fed and the curriculum do not matter


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
    seeds=4,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2412.06769, table 1 and section 4 (methods); arXiv:2505.12514, section 5 (from scratch); sizes and bounds ours",
    rivals={"all methods end alike": ALIKE},
    plot=plot,
    caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
    "candidates.",
)

CLAIMS = (
    STUDY.claim(
        id="coc.curriculum",
        statement=f"In {SETUP}: what are the curriculum and thoughts worth? By how much is the accuracy of a network trained by "
        "Coconut ahead of that of the same training without the curriculum (the last stage from the start), and, at paper scale, "
        "with a pause token in the place of thoughts, with thoughts that are not fed back, with an internalised chain, or "
        "without a chain; and are methods with the curriculum ahead of that without? Means over starts, those of Coconut over "
        f"the starts from which it learned the task (accuracy at least {LEARNED}), with intervals that all hold together at 95%. "
        "In eight starts (study) Coconut is ahead of every one of the six by 0.32 at least; the three with the curriculum are "
        "not ahead of that without by more than 0.05.",
        expected="measured",
        judge=judge_curriculum,
        controls={"Coconut and training without the curriculum exchanged": EXCHANGED},
        found={"accuracy of Coconut minus that of no_curriculum": (0.3, 0.55)},
    ),
)
