"""Li2, Figure 5: from which share of all pairs on trained networks know the others, on groups of four families.

Test accuracy at the end over groups and shares p, with the published p_c = 2.7482 ln M / M; p_50 is the share at which it is one
half, by a logistic fit. Quick: 256 nodes, rate .005, 1200 epochs, 2 seeds; paper: 2048 nodes, rate 5e-4, 10^4 epochs, 20 seeds.
"half way": at half of the epochs; the border moves to smaller shares with longer training. Paper: arXiv 2509.21519.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.grokking import phase_decay
from jaxdyn.theories.li2.published import CRITICAL

TALKS = ("grokking:li2-figure-boundary",)

NAMES = ("prime", "composite", "product", "non-Abelian, d = 2")
GROUPS = {
    "quick": ("11 17 23 31 41 47", "12 16 27", "2x3x3 5x5 2x2x9", "D8 Q24 D18"),
    "paper": ("23 41 59 71 89 101 127", "24 48 72 99 120", "2x2x6 7x7 2x6x6 10x10 11x11", "D12 Q48 D36 Q100 D60"),
}
SHARES = [0.6, *np.linspace(0.7, 1.4, 11).round(2).tolist()]  # in units of p_c
CASES = {
    "quick": {"seeds": 2, "share": [0.6, 0.85, 1.0, 1.1, 1.2, 1.35, 1.6], "lr": 0.005, "every": 600},
    "paper": {"seeds": 20, "share": SHARES, "lr": 5e-4, "hidden": 2048, "epochs": 10000, "every": 1000},
}


def run(scale: str, out: Path) -> None:
    """Train on every group, then the tables and the map."""
    families = dict(zip(NAMES, map(str.split, GROUPS[scale]), strict=True))
    fields = dict(CASES[scale])
    seeds = fields.pop("seeds")
    grid = phase_decay.GRID.replace(group=sum(families.values(), []), **fields)
    ds = experiment.sweep(out, "runs", phase_decay.trial, grid, seeds, chunk=seeds * len(fields["share"]))
    lines = [row(ds.sel(group=[name]), family) for family, groups in families.items() for name in groups]
    experiment.table(out, "halves", lines, f"p_50 after {int(ds.epoch[-1])} epochs: mean of {seeds} seeds, least, most")
    lines = [power(ds.sel(group=groups), name) for name, groups in (families | {"all": list(ds.group.values)}).items()]
    experiment.table(out, "powers", lines, "p_50 proportional to (ln M / M)^power, 95% interval over seeds")
    experiment.figure(out, "li2_fig5", lambda fig: draw(ds, families, fig), (13.0, 4.2))
    experiment.save(out, "li2_fig5", ds)


def row(ds: xr.Dataset, family: str) -> dict:
    """The line of one group."""
    name, found = str(ds.group.values[0]), phase_decay.halves(ds)
    m, p = parse(name).order, float(found.mean())
    line = {"family": family, "group": name, "M": m, "p_50": p, "low": float(found.min()), "high": float(found.max())}
    line |= {
        "half way": float(phase_decay.halves(ds, ds.sizes["epoch"] // 2).mean()),
        "paper p_c": float(ds.predicted_critical.mean()),
    }
    scarce = float(ds.test_accuracy.isel(epoch=-1, share=0).mean())
    return line | {"c": p * m / np.log(m), "paper c": CRITICAL, f"accuracy at {float(ds.share[0]):g} p_c": scarce}


def power(ds: xr.Dataset, family: str) -> dict:
    """The line of one family."""
    try:
        numbers = stats.slope_interval(ds.predicted_critical.isel(share=0, seed=0, drop=True), phase_decay.halves(ds), "group")
    except jd.Inconclusive:  # fewer than three groups whose p_50 is known
        numbers = (None, None, None)
    return {"family": family} | dict(zip(("power", "low", "high"), numbers, strict=True)) | {"paper": 1.0}


def draw(ds: xr.Dataset, families: dict[str, list[str]], fig: Figure) -> None:
    """Accuracies as colours, a column for each group; the published share as a line, p_50 as dots."""
    found, accuracy = phase_decay.halves(ds).mean("seed"), ds.test_accuracy.isel(epoch=-1).mean("seed")
    panels = fig.subplots(1, len(families), sharey=True, width_ratios=[len(groups) for groups in families.values()])
    for ax, (family, groups) in zip(panels, families.items(), strict=True):
        x, own = np.arange(len(groups)), ds.isel(seed=0).sel(group=groups)
        for i, shares in enumerate(own.measured_critical.values):
            cells = accuracy.sel(group=groups[i]).values[:, None]
            middle = np.sqrt(shares[1:] * shares[:-1])
            edges = [shares[0] ** 2 / middle[0], *middle, shares[-1] ** 2 / middle[-1]]
            colours = ax.pcolormesh([i - 0.47, i + 0.47], edges, cells, vmin=0, vmax=1)
        ax.plot(x, own.predicted_critical.isel(share=0), color=plotting.COLORS["theory"], linewidth=2, label=r"$2.75\,\ln M / M$")
        ax.plot(x, found.sel(group=groups), "o", color="white", markeredgecolor="black", label="$p_{50}$")
        ax.set_xticks(x, [name if name.isdigit() else f"{name}\n{parse(name).order}" for name in groups])
        ax.set(title=family, yscale="log")
        ax.grid(False)
    low, high = panels[0].get_ylim()
    ticks = [p for p in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0) if low < p < high]
    panels[0].set(ylabel="share p of all pairs")
    panels[0].set_yticks(ticks, [f"{p:g}" for p in ticks])
    panels[0].minorticks_off()
    panels[-1].legend(loc="lower left")
    for ax in panels[:-1]:
        ax.legend([], [])
    fig.supxlabel("group, and its order M", fontsize=10)
    fig.colorbar(colours, ax=list(panels), label="test accuracy", pad=0.01)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
