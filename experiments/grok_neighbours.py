"""Two neighbours of grokking: losses that round to zero, and the delay that a large output scale causes.

First: the share of training samples whose cross-entropy is exactly zero in float16 and float32, next to the bounds from the logits
(arXiv 2501.04697). Then, for each output scale alpha and quadratic part epsilon, when a network fits and when it generalises,
how far weights and kernel move (arXiv 2310.06110); means over seeds, and a 95% interval of the delay.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.theories.kumar import lazy
from jaxdyn.theories.prieto import arithmetic, published
from jaxdyn.theories.prieto.dynamics import SIGNIFICANT

SCALES = [0.5, 1.0, 2.0, 4.0]
CASES = {
    "quick": {"seeds": 8, "sums": {}, "square": {}},
    "paper": {
        "seeds": 5,
        "sums": {
            "modulus": published.MODULUS,
            "nodes": published.NODES,
            "share": published.SHARE,
            "lr": published.COLLAPSE_RATE,
            "steps": published.STEPS["collapse"],
        },
        "square": {"dimension": 50, "nodes": 500, "samples": 500, "tests": 2000, "every": 200},
    },
}
COLORS = ("measured", "third", "fourth")
KEPT = {
    "fitted": "fitted",
    "general": "generalises",
    "measured_delay": "delay",
    "measured_movement": "movement",
    "kernel_change": "kernel",
}


def rows(ds: xr.Dataset) -> list[dict]:
    """One line for each quadratic part and output scale."""
    lines = []
    for epsilon in ds.epsilon.values:
        for alpha in ds.alpha.values:
            one = ds.sel(epsilon=epsilon, alpha=alpha)
            line = {"epsilon": float(epsilon), "alpha": float(alpha)}
            line |= {label: float(one[name].mean("seed")) for name, label in KEPT.items()}
            _, low, high = stats.mean_interval(one.measured_delay, "seed")
            line |= {"delay, low": float(low), "delay, high": float(high)}
            lines.append(line)
    return lines


def draw(sums: xr.Dataset, square: xr.Dataset, fig: Figure) -> None:
    """Shares of zeros along training with their bounds; delay against the output scale."""
    left, right = fig.subplots(1, 2)
    steps = sums["at"].isel(seed=0)
    for kind, color in zip(arithmetic.KINDS, COLORS, strict=False):
        at = sums.sel(bits=SIGNIFICANT[kind])
        plotting.band(left, steps, at.measured_zeros.transpose("seed", "record"), kind, color)
        for bound in (at.predicted_zeros, at.most):
            left.plot(steps, bound.mean("seed"), ":", color=plotting.COLORS["theory"])
    left.set(xlabel="steps", ylabel="share of losses that are zero", ylim=(-0.02, 1.02))
    for epsilon, color in zip(square.epsilon.values, COLORS, strict=False):
        delay = square.measured_delay.sel(epsilon=epsilon).transpose("seed", "alpha")
        plotting.band(right, square.alpha, delay, rf"$\epsilon = {float(epsilon):g}$", color, marker="o")
    right.set(xlabel=r"output scale $\alpha$", ylabel="steps from fitting to generalising", xscale="log", yscale="log")


def run(scale: str, out: Path) -> None:
    """Train both kinds of networks, tabulate, draw, save."""
    case = CASES[scale]
    sums = experiment.sweep(out, "sums", arithmetic.trial, jd.grid(arithmetic.Arithmetic, **case["sums"]), case["seeds"])
    grid = jd.grid(lazy.Regression, alpha=SCALES, epsilon=[0.25, 0.5], **case["square"])
    square = experiment.sweep(out, "square", lazy.trial, grid, case["seeds"])
    sums, square = sums.squeeze(drop=True), square.squeeze(drop=True)
    experiment.table(out, "delays", rows(square), f"{case['seeds']} seeds a line; low and high: 95% interval of the mean delay")
    experiment.figure(out, "grok_neighbours", lambda fig: draw(sums, square, fig), (9.0, 3.6))
    experiment.save(out, "sums", sums)
    experiment.save(out, "square", square)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
