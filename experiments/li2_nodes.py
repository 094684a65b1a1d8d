"""Li2, through grokking: the energy of every node rises onto its exact maximum while the test accuracy jumps.

One network on Z_23 (quick: 64 nodes; paper: Z_41, 512 nodes) with x^2, trained by gradient descent with momentum on 80% of the
pairs. Left: each node's energy on the unit sphere over all pairs, over the maximum M/4 of its irrep, one line per node, coloured by
whether the node ends in the irrep forecast from its start; below: training and test accuracy. Right: the share of nodes that are in
the irrep forecast, over all networks, and for each form of the theory and each rival the share at the end. Paper: arXiv 2509.21519.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.li2.features.single_nodes import trial
from jaxdyn.theories.li2.features.stage2_nodes import right
from jaxdyn.theories.li2.training import Training

CASES: dict[str, dict[str, Any]] = {
    "quick": {"seeds": 16, "epochs": 80, "every": 1},
    "paper": {"seeds": 64, "group": "41", "hidden": 512, "epochs": 600, "every": 2},
}
NAMES = {
    "node": "both layers of the node",
    "energy": "energy from w alone",
    "start": "largest at the start",
    "other": "permuted pairs",
}


def run(scale: str, out: Path) -> None:
    """Train, tabulate, draw."""
    fields: dict[str, Any] = {"share": 0.8, "lr": 1.0, "decay": 1e-4, "hidden": 64, "optimizer": "sgd"} | CASES[scale]
    seeds = fields.pop("seeds")
    ds = experiment.sweep(out, "runs", trial, jd.grid(Training, **fields), seeds, chunk=min(seeds, 16))
    rows = [{"forecast": NAMES[name], **part} for name, part in shares(ds).items()]
    experiment.table(out, "shares", rows, f"Share of nodes forecast correctly, mean over {seeds} networks")
    experiment.figure(out, "li2_nodes", lambda fig: draw(ds, fig), (12.0, 6.2))
    experiment.save(out, "li2_nodes", ds)


def shares(ds: xr.Dataset) -> dict[str, dict[str, float]]:
    """For each form of the theory and each rival the share of nodes named correctly: mean and standard error over networks."""
    parts = {form: right(ds.sel(form=form)) for form in ("node", "energy")}
    parts |= {name: right(ds, f"{name}_place") for name in ("start", "other")}
    return {n: {"mean": float(p.mean()), "standard error": float(p.std(ddof=1) / np.sqrt(p.size))} for n, p in parts.items()}


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Energies of one network's nodes above its accuracies; on the right what is forecast."""
    grid = fig.add_gridspec(2, 2, width_ratios=(1.7, 1), height_ratios=(2.2, 1))
    left, below = fig.add_subplot(grid[0, 0]), fig.add_subplot(grid[1, 0])
    curve, bars = fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[1, 1])
    one = ds.isel(seed=0)
    hit = (one.predicted_place.sel(form="node") == one.measured_place).values
    _energies(left, one, hit)
    for name, color in (("curve_test", "measured"), ("curve_right", "theory")):
        part = one[name].sel(form="node") if "form" in one[name].dims else one[name]
        label = {"curve_test": "test accuracy", "curve_right": "nodes in the irrep forecast"}[name]
        below.plot(ds.epoch, part, color=plotting.COLORS[color], label=label)
    below.set(xlabel="epoch", ylabel="share", ylim=(-0.03, 1.03))
    for form, color in (("node", "theory"), ("energy", "third")):
        part = ds.curve_right.sel(form=form).transpose("seed", "epoch")
        plotting.band(curve, ds.epoch, part, NAMES[form], plotting.COLORS[color])
    curve.set(title=f"nodes in the irrep forecast, {ds.sizes['seed']} networks", xlabel="epoch", ylabel="share", ylim=(0, 1))
    told = shares(ds)
    places = np.arange(len(told))[::-1]
    colors = [plotting.COLORS[c] for c in ("theory", "third", "control", "control")]
    bars.barh(places, [p["mean"] for p in told.values()], xerr=[2 * p["standard error"] for p in told.values()], color=colors)
    bars.set_yticks(places, [NAMES[name] for name in told])
    bars.set(xlabel="share of nodes forecast correctly", xlim=(0, 1))


def _energies(ax: Axes, one: xr.Dataset, hit: np.ndarray) -> None:
    """A line for each node; 1 is the exact maximum of the irrep in which the node is."""
    rows = one.curve_energy.transpose("node", "epoch").values
    for flag, color, label in ((True, "theory", "in the irrep forecast"), (False, "control", "in another")):
        lines = [np.column_stack([one.epoch, row]) for row in rows[hit == flag]]
        ax.add_collection(LineCollection(lines, colors=plotting.COLORS[color], linewidths=0.8, alpha=0.55, label=label))
    ax.axhline(1, color="0.3", linestyle="--", linewidth=1, label="exact maximum")
    ax.set(
        title="energy of every node of one network", ylabel="energy over its maximum", xlim=(0, int(one.epoch[-1])), ylim=(0, 1.06)
    )


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
