"""What the curriculum, thoughts and their feedback are worth in training from scratch: the methods compared."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.coc.model import METHODS
from jaxdyn.theories.coc.training import SETUP, STARTS, Training, starts, trial

COMPARED = ["coconut", "no_curriculum"]
LEVEL = 0.95  # of each interval


def judge_curriculum(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Accuracy of each method, and of Coconut minus that of what lacks a part of it, start by start: means over all starts.

    A start from which Coconut does not learn counts: without it the mean would be that of lucky ones. Differences from training
    without the curriculum were .20 to .45 in twelve starts (0:4 and 7000:7008; the last eight: .34 [.25, .42]). One failed start
    among four makes their interval contain 0; about eight starts are needed to be sure of the sign.
    """
    jd.need(ds, recipe=COMPARED)
    accuracy = {str(name): ds.measured_accuracy.sel(recipe=name, drop=True) for name in ds.recipe.values}
    full = accuracy["coconut"]
    ahead = {name: full - accuracy[name] for name in METHODS if name in accuracy and name != "coconut"}

    def mean(name: str, values: xr.DataArray) -> jd.Reading:
        return jd.mean_reading(name, values, over="seed", level=LEVEL)

    return [
        starts(full, LEVEL),
        *(mean(f"accuracy of {LABELS.get(name, name)}", accuracy[name]) for name in COMPARED),
        *(mean(f"accuracy of Coconut minus that of {name}", gap) for name, gap in ahead.items()),
    ]


LABELS = {"coconut": "Coconut"}
COIN = {"accuracy of Coconut": 0.5, STARTS: 0.0}  # nothing is learned: a coin between the candidates


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
    paper_seeds=16,
    evidence="network",
    source="arXiv:2412.06769, table 1 and section 4 (methods); arXiv:2505.12514, section 5 (from scratch); sizes and bounds ours",
    tested=f"{SETUP} Method: {{recipe}}.",
    rivals={"nothing is learned: a coin between the candidates": jd.off(COIN)},
    plot=plot,
    caption="Share of right answers on graphs that were not trained on, by method. A point is a run; dashed: a coin between "
    "candidates.",
)

CLAIMS = (
    STUDY.claim(
        id="coc.curriculum",
        title="What Coconut's curriculum is worth when training from scratch",
        statement="How often do networks answer right that were trained by Coconut, and without its curriculum (the last stage "
        "from the start), and by how much is Coconut ahead, from the same starts? (Over eight starts Coconut is ahead; among "
        "four a single one that fails can hide it.)",
        talks=(
            "practical:coc-figure-training",
            "practical:coc-table",
            "practical:coc-table-coconut",
            "practical:coc-table-no-curriculum",
            "practical:coc-table-icot",
            "practical:coc-table-pause",
            "practical:coc-table-no-thought",
            "practical:coc-table-pause-as-thought",
        ),
        expected="measured",
        recorded={
            "starts from which Coconut answers at least 80% right": (0.409, 0.75, 0.929),
            "accuracy of Coconut": (0.645, 0.8076, 0.971),
            "accuracy of no_curriculum": (0.464, 0.4902, 0.517),
            "accuracy of Coconut minus that of no_curriculum": (0.149, 0.3174, 0.486),
        },
        recorded_seeds=8,
        judge=judge_curriculum,
    ),
)
