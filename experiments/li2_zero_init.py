"""Li2, Figures 14 to 16: a top layer that starts at zero against the normal start: epochs to 95% test accuracy over shares.

Rate .005, decay 5e-5. Quick: M = 23 with 256 nodes and M = 41 with 512; paper: M = 41, 89, 127 with 1024. Runs that do not get
there count as later than all others, and with all epochs in "normal / zero", the geometric mean over seeds. "before": earlier
runs of our own with another implementation, 2 or 3 seeds. Paper: arXiv 2509.21519.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import zero_start
from jaxdyn.theories.li2.dynamics.retention import critical_share
from jaxdyn.theories.li2.training import Training

PAPER = {"seeds": 15, "hidden": 1024, "epochs": 5000, "every": 10}
CASES = {
    "quick": {
        "23": {"seeds": 6, "hidden": 256, "share": [0.5, 0.6, 0.7, 0.8, 0.9], "epochs": 1400, "every": 5},
        "41": {"seeds": 3, "hidden": 512, "share": [0.4, 0.5, 0.6, 0.8], "epochs": 800, "every": 5},
    },
    "paper": {
        "41": PAPER | {"share": [0.3, 0.4, 0.5, 0.7, 0.9]},
        "89": PAPER | {"share": [0.2, 0.25, 0.3, 0.5, 0.9]},
        "127": PAPER | {"share": [0.15, 0.2, 0.3, 0.5, 0.9]},
    },
}
TICKS = (20, 50, 100, 200, 500, 1000, 2000, 5000)
STARTS = {1.0: ("normal", "measured"), 0.0: ("zero", "third")}
BEFORE = {
    ("23", 256, 0.8, 1.0): "135-195",
    ("41", 512, 0.5, 1.0): "0 of 3 by 400",
    ("41", 512, 0.5, 0.0): "335-350, 2 of 3 by 400",
}


def run(scale: str, out: Path) -> None:
    """Train, tabulate, draw."""
    lines, runs = [], {}
    for name, case in CASES[scale].items():
        seeds, fields = case["seeds"], {field: value for field, value in case.items() if field != "seeds"}
        grid = jd.grid(Training, group=name, top=list(STARTS), lr=0.005, decay=5e-5, **fields)
        runs[name] = experiment.sweep(out, "runs", zero_start.trial, grid, seeds, chunk=seeds)
        lines += rows(name, runs[name], case["hidden"])
        experiment.save(out, f"li2_zero_init_{name}", runs[name])
    experiment.table(out, "times", lines, "Epochs to 95% test accuracy, medians; paper: zero is faster, most when pairs are scarce")
    experiment.figure(out, "li2_zero_init", lambda fig: draw(runs, fig), (12.0, 3.4 * len(runs)))


def rows(name: str, ds: xr.Dataset, hidden: int) -> list[dict]:
    """One line per share: both starts, and in how many seeds zero is ahead."""
    lines, end = [], float(ds.epoch[-1])
    for share in ds.share.values:
        row = {"M": parse(name).order, "nodes": hidden, "share": float(share), "p / p_c": share / critical_share(parse(name))}
        normal, zero = (ds.measured_time.sel(share=share, top=top) for top in STARTS)
        for time, (top, (label, _)) in zip((normal, zero), STARTS.items(), strict=True):
            middle = float(time.median())
            row |= {
                label: middle if middle <= end else f"> {end:g}",
                f"{label}, there": f"{int((time <= end).sum())} of {time.size}",
            }
            row |= {f"before, {label}": BEFORE.get((name, hidden, float(share), top))}
        row |= {"zero ahead": int((normal > zero).sum()), "behind": int((normal < zero).sum())}
        lines.append(row | {"normal / zero": float(np.exp(np.log(normal.clip(max=end) / zero.clip(max=end)).mean()))})
    return lines


def draw(runs: dict[str, xr.Dataset], fig: Figure) -> None:
    """A row for each group: epochs needed over the share, and accuracies along training where pairs are scarcest and most."""
    for row, (name, ds) in zip(fig.subplots(len(runs), 3, squeeze=False), runs.items(), strict=True):
        end = float(ds.epoch[-1])
        there = ds.share.values[(ds.measured_time <= end).any(["seed", "top"])]
        shown = (there[0] if there.size else ds.share.values[0], ds.share.values[-1])
        for top, (label, color) in STARTS.items():
            time = ds.measured_time.sel(top=top).clip(max=end).transpose("seed", "share")
            plotting.band(row[0], ds.share, time, f"{label} start", color, level=1.0, marker="o")
            for ax, share in zip(row[1:], shown, strict=True):
                curve = ds.accuracy.sel(top=top, share=share).transpose("seed", "epoch")
                plotting.band(ax, ds.epoch, curve, f"{label} start", color)
                ax.set(xscale="log", xlim=(ds.epoch[1], end), title=f"M = {parse(name).order}, {share:.0%} of the pairs")
                ax.set(xlabel="epoch", ylabel="test accuracy")
        row[0].axhline(end, linestyle=":", color=plotting.COLORS["control"], label="end of training")
        row[0].set(yscale="log", xlabel="share of the pairs", ylabel="epochs to 95%", title=f"M = {parse(name).order}")
        ticks = [epoch for epoch in TICKS if ds.measured_time.min() <= epoch <= end]
        row[0].set_yticks(ticks, [str(epoch) for epoch in ticks])
        row[0].minorticks_off()


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
