"""Li2, Figure 8: Muon against Adam with few hidden nodes: irreps that nodes hold, and test losses, over the number of nodes.

Both start from the same weights and train on the same pairs, seed by seed; p is Wilcoxon's one-sided chance of the gap.
Quick: M = 23, 16 seeds; paper: M = 71, 48 seeds. Muon's rate for W is .02, Adam's .005. Paper: arXiv 2509.21519.
"""

import sys
from pathlib import Path

import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.theories.li2.interaction import diversity
from jaxdyn.theories.li2.training import Training

CASES = {
    "quick": {"seeds": 16, "group": "23", "hidden": [8, 12, 16, 24, 32, 48, 64], "epochs": 1000, "every": 50},
    "paper": {"seeds": 48, "group": "71", "hidden": [16, 32, 48, 64, 96, 128, 256], "epochs": 3000, "every": 100},
}
COLORS = {"adam": "measured", "muon": "theory"}


def run(scale: str, out: Path) -> None:
    """Train, tabulate, draw."""
    fields = dict(CASES[scale])
    seeds = fields.pop("seeds")
    grid = jd.grid(Training, optimizer=list(COLORS), share=0.6, lr=0.005, decay=5e-5, **fields)
    ds = experiment.sweep(out, "runs", diversity.trial, grid, seeds, chunk=seeds)
    title = f"M = {fields['group']}, 60% of the pairs, {seeds} seeds; paper: Muon has the lower test loss at few nodes"
    experiment.table(out, "nodes", rows(ds), title)
    experiment.figure(out, "li2_fig8", lambda fig: draw(ds, fig), (12.0, 3.6))
    experiment.save(out, "li2_fig8", ds)


def rows(ds: xr.Dataset) -> list[dict]:
    """One line per number of nodes."""
    lines = []
    for hidden in ds.hidden.values:
        one = ds.sel(hidden=hidden)
        row = {"nodes": int(hidden), "irreps": int(one.irreps.max())}
        ends = {"held": (one.measured_held, 1, np.mean), "test loss": (one.measured_loss, -1, np.median)}
        for name, (value, sign, middle) in ends.items():
            row |= {f"{name}, {kind}": float(middle(value.sel(optimizer=kind))) for kind in COLORS}
            gap = sign * (value.sel(optimizer="muon") - value.sel(optimizer="adam")).values
            chance = scipy.stats.wilcoxon(gap, alternative="greater", zero_method="zsplit").pvalue if np.any(gap) else 1.0
            row |= {f"p, {name}": float(chance)}
        end = one.test_accuracy.isel(epoch=-1)
        lines.append(row | {f"test accuracy, {kind}": float(end.sel(optimizer=kind).mean()) for kind in COLORS})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """Irreps held and test accuracy, means with their 95% intervals, and test loss, medians and ranges of 90% of the runs."""
    panels = fig.subplots(1, 3)
    ends = (ds.measured_held, ds.measured_loss, ds.test_accuracy.isel(epoch=-1))
    for ax, value, title in zip(panels, ends, ("irreps held", "test loss", "test accuracy"), strict=True):
        for kind, color in COLORS.items():
            one, color = value.sel(optimizer=kind), plotting.COLORS[color]
            if title == "test loss":
                plotting.band(ax, ds.hidden, one, kind, color, marker="o")
            else:
                mean, low, high = stats.mean_interval(one, "seed")
                ax.errorbar(ds.hidden, mean, [mean - low, high - mean], fmt="o-", capsize=3, color=color, label=kind)
        ax.set(xscale="log", xlabel="hidden nodes", ylabel=title)
        ax.set_xticks(ds.hidden.values, [f"{k}" for k in ds.hidden.values])
        ax.minorticks_off()
    panels[0].axhline(float(ds.irreps.max()), linestyle="--", color=plotting.COLORS["control"], label="all")
    panels[1].set(yscale="log")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
