"""Neural collapse along training: the unconstrained-features model in its gradient flow, and a perceptron on handwritten digits.

Rows: 3 and 10 classes of equal weight, half of the classes 10 times as heavy, and 10 classes in 5 dimensions, where a simplex has
no room. Columns: scatter within classes over that between them, least and largest cosine of two class means (dotted: -1/(K - 1)).
An interrupted run resumes. Paper: arXiv 2008.08186.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.collapse import flow_descent, network

SCALES = {
    "quick": {"seeds": 4},
    "paper": {"each": 100, "hidden": 256, "every": 2000.0, "seeds": 4},
}
WORLDS = {
    "K = 3": {"classes": 3.0},
    "K = 10": {"classes": 10.0},
    "K = 10, half 10 times as heavy": {"classes": 10.0, "imbalance": 10.0},
}
NARROW = {"K = 10, 5 dimensions": {"classes": 10.0, "dim": 5.0}}
COLORS = ("measured", "theory", "third", "fourth")


def line(name: str, model: str, within: xr.DataArray, low: xr.DataArray, high: xr.DataArray, target: float) -> dict:
    """One row of the table: means over runs at the end."""
    ends = (float(x.mean()) for x in (within, low, high))
    return (
        {"model": model, "classes": name}
        | dict(zip(("within / between", "least cosine", "largest"), ends, strict=True))
        | {"-1/(K - 1)": target}
    )


def draw(flows: dict[str, xr.Dataset], nets: dict[str, xr.Dataset], fig: Figure) -> None:
    """Flow above, perceptron below."""
    axes = fig.subplots(2, 2)
    for (name, ds), color in zip(flows.items(), COLORS, strict=False):
        time, part = ds.time.values[1:], ds.isel(time=slice(1, None))
        plotting.band(axes[0, 0], time, np.maximum(part.path_within.transpose("seed", "time"), 1e-16), name, color)
        for end in ("path_low", "path_high"):
            plotting.band(axes[0, 1], time, part[end].transpose("seed", "time"), "", color)
    for (name, ds), color in zip(nets.items(), COLORS, strict=False):
        steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
        plotting.band(axes[1, 0], steps, ds.measured_within.transpose("seed", "step"), name, color)
        for end in ("low", "high"):
            plotting.band(axes[1, 1], steps, ds[end].transpose("seed", "step"), "", color)
    for row, (label, scale) in zip(axes, (("t", "log"), ("step", "linear")), strict=True):
        row[0].set(xscale=scale, yscale="log", xlabel=label, ylabel="scatter within / between")
        row[1].set(xscale=scale, xlabel=label, ylabel="least and largest cosine", ylim=(-1.05, 1))
        for classes in (3, 10):
            row[1].axhline(-1 / (classes - 1), linestyle=":", color=plotting.COLORS["control"])
    axes[0, 0].set_title("free features, gradient flow")
    axes[1, 0].set_title("perceptron on digits")


def run(scale: str, out: Path) -> None:
    """Sweep, print, draw and save."""
    fields = dict(SCALES[scale])
    seeds, lines = fields.pop("seeds"), []
    flows = {
        name: experiment.sweep(out, "flow", flow_descent.trial, jd.grid(flow_descent.Unconstrained, **world), seeds)
        for name, world in (WORLDS | NARROW).items()
    }
    nets = {
        name: experiment.sweep(out, "network", network.trial, jd.grid(network.Perceptron, **fields, **world), seeds)
        for name, world in WORLDS.items()
    }
    for name, ds in flows.items():
        end = ds.measured_cosines
        target = float(ds.predicted_cosines.mean())
        lines.append(line(name, "free features", ds.measured_within, end.sel(end="least"), end.sel(end="largest"), target))
    for name, ds in nets.items():
        end = ds.isel(step=-1)
        lines.append(line(name, "perceptron", end.measured_within, end.low, end.high, float(ds.predicted_cosines.mean())))
    experiment.table(out, "ends", lines, f"At the end of training, {seeds} seeds")
    experiment.figure(out, "collapse_curve", lambda fig: draw(flows, nets, fig), (9, 6.5))
    for place, ds in enumerate([*flows.values(), *nets.values()]):
        experiment.save(out, f"runs{place}", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
