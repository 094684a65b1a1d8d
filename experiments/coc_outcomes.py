"""Coconut, figure of outcomes: what a network writes after k thoughts, the right path, a real path elsewhere, or no path at all.

Networks are trained from scratch with a random stage in a share of the steps, so that they can be asked with any number k of
thoughts; k = 0 is a written chain. Graphs are small and balanced, and their paths are unique: the class "longer path" cannot occur.
A class is a share of the problems, none of which was trained on, with its 95% interval over networks that learned the task (80% of
answers right with all steps thought); in the last row all steps are thought, and the class is that of the answer. `--scale paper`
trains wider networks on three steps. Published are curves without numbers, and one problem: a hallucination of the written chain, a
wrong target after one thought, the right path after two. An interrupted run resumes. Paper: arXiv 2412.06769.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.coc.outcomes import CLASSES, trial
from jaxdyn.theories.coc.training import LEARNED, THREE_HOPS, Training

TALKS = (
    "practical:coc-hallucination",
    "practical:coc-one-thought",
    "practical:coc-two-thoughts",
    "practical:coc-figure-outcomes",
)

SCALES = {
    "quick": {"mixing": 0.3, "every": 300.0, "first": 0.6, "seeds": 4},
    "paper": {**THREE_HOPS, "mixing": 0.3, "seeds": 8},
}
COLORS = ("measured", "third", "control")


def learners(ds: xr.Dataset) -> xr.Dataset:
    """Networks that learned the task; all of them if fewer than two did."""
    right = ds.measured_right.isel(thoughts=-1).transpose("seed", ...).values.ravel()
    kept = np.flatnonzero(right >= LEARNED)
    return ds.isel(seed=kept) if kept.size > 1 else ds


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each number of thoughts: shares of classes in percent with half of their 95% intervals, and of right answers."""
    lines = []
    for k in ds.thoughts.values.tolist():
        line = {"thoughts": k, "written": "answer" if k == ds.thoughts.max() else "rest of the path"}
        for name in CLASSES:
            mean, low, _ = (100 * float(x) for x in mean_interval(ds.measured_share.sel(thoughts=k, outcome=name), "seed"))
            line |= {name: mean, f"{name} +-": mean - low}
        lines.append(line | {"right answers": 100 * float(ds.measured_right.sel(thoughts=k).mean())})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Shares over the number of thoughts: means over networks, and every network."""
    ax = fig.subplots()
    for name, color in zip(CLASSES, COLORS, strict=True):
        share = 100 * ds.measured_share.sel(outcome=name).transpose("thoughts", ...)
        values = share.values.reshape(share.sizes["thoughts"], -1)
        ax.plot(ds.thoughts, values.mean(1), "-", color=plotting.COLORS[color], label=name)
        ax.plot(ds.thoughts, values, "o", color=plotting.COLORS[color], alpha=0.5)
    ax.set(xlabel="thoughts", ylabel="share of problems (%)", xticks=ds.thoughts, ylim=(-3, 103))
    ax.legend()


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields = dict(SCALES[scale])
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "outcomes", trial, jd.grid(Training, **fields), seeds, chunk=1)
    able = learners(ds)
    title = f"What is written after a number of thoughts (% of problems), {able.sizes['seed']} of {seeds} networks"
    experiment.table(out, "outcomes", rows(able), title)
    experiment.figure(out, "coc_outcomes", lambda fig: draw(able, fig), (6, 4))
    experiment.save(out, "outcomes", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
