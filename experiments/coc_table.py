"""Coconut, table 1, column ProsQA: accuracy by method, trained from scratch on small balanced graphs, and the published numbers.

The published networks are pretrained GPT-2 on graphs of 23 nodes, where rules that look for no path reach 60 to 98% (second table:
on graphs drawn as released and balanced; `--data FILE` adds a released file). Here both candidates are two steps from their roots
and names are random; a rule that only picks a candidate has 50%. `--scale paper` trains wider networks on three steps. An
interrupted run resumes. Papers: arXiv 2412.06769, 2505.12514.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.data import prosqa
from jaxdyn.stats import mean_interval
from jaxdyn.theories.coc import model, published
from jaxdyn.theories.coc.training import THREE_HOPS, Training, trial

TALKS = (
    "practical:coc-table",
    "practical:coc-table-cot",
    "practical:coc-table-no-cot",
    "practical:coc-table-icot",
    "practical:coc-table-pause",
    "practical:coc-table-coconut",
    "practical:coc-table-no-curriculum",
    "practical:coc-table-no-thought",
    "practical:coc-table-pause-as-thought",
    "practical:coc-better-than-no-cot",
)

SCALES = {"quick": {"seeds": 3}, "paper": {**THREE_HOPS, "seeds": 3}}
OPTIONS = {"--data": {"metavar": "FILE", "help": "a released file of ProsQA, for the rules of the second table"}}
GRAPHS = 500


def rows(ds: xr.Dataset) -> list[dict]:
    """A line for each method: accuracy with half of its 95% interval, lowest and highest run, and the published one."""
    lines = []
    for name in model.METHODS:
        runs = 100 * ds.measured_accuracy.sel(recipe=name)
        mean, low, _ = (float(x) for x in mean_interval(runs, "seed"))
        line = {"method": name, "accuracy": mean, "+-": mean - low, "lowest": float(runs.min()), "highest": float(runs.max())}
        accuracy, deviation, tokens = published.PROSQA[name]
        lines.append(line | {"paper": accuracy, "paper +-": deviation, "paper tokens": tokens})
    return lines


def rules(data: str | None) -> list[dict]:
    """A line for each set of graphs: accuracy of the rules."""
    sets = [(variant, prosqa.draw(0, GRAPHS, variant)) for variant in ("released", "balanced")]
    if data is not None:
        sets.append((data, prosqa.load(data)))
    return [{"graphs": name} | {k: 100 * v for k, v in prosqa.shortcuts(problems).items()} for name, problems in sets]


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy of every run, and the published one, by method; losses of Coconut along training."""
    left, right = fig.subplots(1, 2, width_ratios=(2, 1))
    for at, name in enumerate(model.METHODS):
        values = 100 * ds.measured_accuracy.sel(recipe=name).values.ravel()
        label = {"label": "trained here, one run"} if at == 0 else {}
        left.plot(np.full(values.size, at), values, "o", color=plotting.COLORS["measured"], alpha=0.6, **label)
        label = {"label": "published, pretrained"} if at == 0 else {}
        left.plot(at, published.PROSQA[name][0], "x", color=plotting.COLORS["theory"], **label)
    left.axhline(50, linestyle="--", color=plotting.COLORS["control"], label="a coin between candidates")
    left.set_xticks(range(len(model.METHODS)), [n.replace("_", " ") for n in model.METHODS], rotation=25)
    left.set(ylabel="right answers (%)", ylim=(-3, 103))
    losses = ds.loss.sel(recipe="coconut").values.reshape(-1, ds.sizes["sample"])
    right.plot(np.arange(1, losses.shape[1] + 1) / losses.shape[1], losses.T, color=plotting.COLORS["measured"])
    right.set(xlabel="share of all steps", ylabel="loss of Coconut (nats)")


def run(scale: str, out: Path, data: str | None = None) -> None:
    """Sweep, print, draw and save."""
    fields = dict(SCALES[scale])
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "methods", trial, jd.grid(Training, recipe=list(model.METHODS), **fields), seeds, chunk=1)
    experiment.table(out, "methods", rows(ds), f"Right answers on graphs that were not trained on (%), {seeds} seeds")
    experiment.table(out, "rules", rules(data), "Right answers of rules that look for no path, or short ones (%)")
    experiment.figure(out, "coc_table", lambda fig: draw(ds, fig), (10, 4))
    experiment.save(out, "methods", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
