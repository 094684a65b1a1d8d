"""Coconut, figures 7 and 8: how much probability the next nodes have after each number of thoughts, and whether one or several.

The value of a node is its share of the next token's probability, among all names, if the network is made to speak after i - 1
thoughts. Candidates are the nodes i steps from the root. Left and middle: by problem, sorted, the largest value and the sum of the
two largest; the gap between them is what the network keeps in view apart from its first choice. Right: values of nodes by their
distance from the root. Small balanced graphs; networks trained from scratch that learned the task. `--scale paper` trains wider
networks on three steps. An interrupted run resumes. Paper: arXiv 2412.06769.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import softmax

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.coc.training import THREE_HOPS, Training, shown, trial

TALKS = ("practical:coc-same-thought", "practical:coc-dead-end", "practical:coc-figure-inside")

SCALES = {"quick": {"seeds": 4}, "paper": {**THREE_HOPS, "seeds": 8}}
COLORS = ("measured", "third")
BY_DISTANCE = ("fourth", "control", "theory", "measured")


def values(ds: xr.Dataset, thought: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of all nodes, and their distances from the root, [problem, node]."""
    logits = ds.products.sel(thought=thought).transpose("seed", "graph", "node").values
    away = ds.nearest.transpose("seed", "graph", "node").values
    return softmax(logits, -1).reshape(-1, away.shape[-1]), away.reshape(-1, away.shape[-1])


def top(ds: xr.Dataset, thought: int) -> np.ndarray:
    """Sums of the largest and the two largest values of candidates, [problem, 2]."""
    value, away = values(ds, thought)
    return np.cumsum(-np.sort(-np.where(away == thought, value, 0.0), -1), -1)[:, :2]


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each number of thoughts: mean values of the first and second candidate, of all other nodes together; entropies."""
    lines = []
    for i in ds.thought.values.tolist():
        first, both = top(ds, i).mean(0).tolist()
        line = {"thoughts before": i - 1, "first candidate": first, "second candidate": both - first, "others": 1 - both}
        line["entropy of candidates (nats)"] = float(ds.measured_open.sel(thought=i).mean())
        lines.append(line | {"of all names": float(ds.measured_entropy.sel(inputs=i - 1).mean())})
    return lines


def spoken(thoughts: int) -> str:
    """How many thoughts came before, for titles and legends."""
    return "before the first thought" if thoughts == 0 else f"after {thoughts} thought{'s' * (thoughts > 1)}"


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Sorted sums by number of thoughts, and mean values by distance."""
    thoughts = ds.thought.values.tolist()
    *left, right = fig.subplots(1, len(thoughts) + 1)
    for ax, i in zip(left, thoughts, strict=True):
        sums = np.sort(top(ds, i), 0)
        share = np.linspace(0, 100, len(sums))
        for column, label, color in zip(sums.T, ("largest value", "sum of the two largest"), COLORS, strict=True):
            named = {"label": label} if i == thoughts[0] else {}
            ax.plot(share, column, color=plotting.COLORS[color], **named)
        ax.set(title=spoken(i - 1), xlabel="percentile of problems", ylabel="value of candidates", ylim=(0, 1.02))
    for i, color in zip(thoughts, BY_DISTANCE, strict=False):
        value, away = values(ds, i)
        steps = np.unique(away)
        means = [value[away == d].mean() for d in steps]
        right.plot(steps, means, "o-", color=plotting.COLORS[color], label=spoken(i - 1))
    right.set(xlabel="distance from the root (last: no path)", ylabel="value of a node, mean")
    right.set_xticks(steps)


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields = dict(SCALES[scale])
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "coconut", trial, jd.grid(Training, recipe="coconut", **fields), seeds, chunk=1)
    best = shown(ds)
    experiment.table(out, "values", rows(best), f"Values of candidates for the next node, {best.sizes['seed']} of {seeds} networks")
    experiment.figure(out, "coc_probability_tree", lambda fig: draw(best, fig), (11, 3.5))
    experiment.save(out, "coconut", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
