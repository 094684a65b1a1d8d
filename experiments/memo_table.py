"""Memorisation: perceptrons on handwritten digits with true and random labels and destroyed images, next to the published table.

Rows: true labels, with weight decay, with noise, random labels, shuffled and random pixels, Gaussian images; one and three hidden
layers. Figure: training accuracy along training, and test accuracy over the share of random labels. Quick: 300 images and 128
hidden units; `--scale paper`: 1297 images and 512 units. The published numbers are of CIFAR-10. An interrupted run resumes.
Paper: arXiv 1611.03530.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.stats import mean_interval
from jaxdyn.theories.memo import parameters
from jaxdyn.theories.memo.training import Memory, trial

TALKS = ("training:memo-table", "training:memo-figure-1")

SCALES = {
    "quick": {"seeds": 4},
    "paper": {"hidden": 512, "active": 512.0, "images": 1297, "lr": 1e-3, "every": 25.0, "records": 40, "seeds": 4},
}
ROWS = {
    "none": {},
    "decay": {"decay": 0.1},
    "noise": {"noise": 0.5},
    "random labels": {"condition": "random labels"},
    "shuffled pixels": {"condition": "shuffled pixels"},
    "random pixels": {"condition": "random pixels"},
    "Gaussian images": {"condition": "gaussian"},
}
SHARES = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
LAYERS = {1: "MLP 1x512", 3: "MLP 3x512"}
OPTIONS = {"--seeds": {"type": int, "metavar": "N", "help": "number of seeds (default: 4)"}}


def line(name: str, layers: int, ds: xr.Dataset) -> dict:
    """One row: accuracies in per cent, steps to fit, and the published numbers."""
    test, low, _ = (float(x) for x in mean_interval(100 * ds.measured_test, "seed"))
    paper = parameters.TABLE[LAYERS[layers]].get(name, (None, None))
    return {
        "hidden layers": layers,
        "condition": name,
        "training accuracy": 100 * float(ds.measured_right.mean()),
        "test accuracy": test,
        "+-": test - low,
        "steps to fit": float(ds.measured_first.mean()),
        "paper training": paper[0],
        "paper test": paper[1],
    }


def draw(runs: dict[str, xr.Dataset], curves: dict[int, xr.Dataset], fig: Figure) -> None:
    """Training accuracy by condition with one hidden layer, and test accuracy over random labels."""
    left, right = fig.subplots(1, 2)
    styles = ("-", "-", "-", "-", "--", "--", "--")
    for (name, ds), color, style in zip(runs.items(), [*plotting.CYCLE, "#000000"], styles, strict=True):
        steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
        left.plot(steps, 100 * ds.train.mean("seed"), style, color=color, label=name)
    left.set(xlabel="step", ylabel="training accuracy, %")
    for (layers, ds), color in zip(curves.items(), ("measured", "theory"), strict=True):
        name = f"{layers} hidden layer{'s' if layers > 1 else ''}"
        plotting.band(right, 100 * np.array(SHARES), 100 * ds.measured_test.transpose("seed", "corruption"), name, color)
    right.axhline(10, linestyle=":", color=plotting.COLORS["control"])
    right.set(xlabel="labels drawn at random, %", ylabel="test accuracy, %", ylim=(0, 100))


def run(scale: str, out: Path, **chosen: object) -> None:
    """Sweep, print, draw and save."""
    fields = SCALES[scale] | {k: v for k, v in chosen.items() if v is not None}
    seeds, lines, curves, shown = fields.pop("seeds"), [], {}, {}
    for layers in LAYERS:
        runs = {
            name: experiment.sweep(out, "runs", trial, jd.grid(Memory, layers=layers, **fields, **row), seeds)
            for name, row in ROWS.items()
        }
        lines += [line(name, layers, ds) for name, ds in runs.items()]
        curves[layers] = experiment.sweep(out, "runs", trial, jd.grid(Memory, layers=layers, corruption=SHARES, **fields), seeds)
        shown[layers] = runs
        experiment.save(out, f"curve{layers}", curves[layers])
    experiment.table(out, "conditions", lines, f"Digits, {seeds} seeds; paper: CIFAR-10")
    experiment.figure(out, "memo_table", lambda fig: draw(shown[1], curves, fig), (10, 4))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__, options=OPTIONS))
