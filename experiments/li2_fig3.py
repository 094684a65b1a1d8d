"""Li2, Figure 3: the stages of training, with weight decay and without, for three learning rates (none is published).

Accuracies, the gradient G_F that the hidden layer receives, changes of V and W, and how far the Gram matrices of nodes and of
samples are from diagonal. Quick: M = 41, 256 nodes, 50% of the pairs; paper: M = 71, 2048 nodes, n = 2016 (40%). "before": the
same four levels in an earlier run of our own at M = 71, 2048 nodes, looked at every 10 epochs (rate .005: test accuracy .66 at
epoch 40). At large rates Adam's first steps are the largest changes of both layers. Paper: arXiv 2509.21519.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.li2.grokking import stages
from jaxdyn.theories.li2.published import FIGURE_3, OFF_DIAGONAL
from jaxdyn.theories.li2.training import Training

TALKS = ("grokking:li2-figure-stages",)

CASES = {
    "quick": {"seeds": 3, "group": "41", "share": 0.5, "hidden": 256, "epochs": 400, "every": 1},
    "paper": {"seeds": 15, "group": "71", "share": 0.4, "hidden": 2048, "epochs": 400, "every": 1},
}
RATES = [0.0005, 0.002, 0.005]
LEVELS = (("train", 0.99), ("test", 0.5), ("test", 0.95), ("test", 0.99))
BEFORE = {(0.0005, 2e-4): "30, 160, 200, 210", (0.002, 2e-4): "?, 70, 90, 100", (0.002, 0.0): "10, never"}


def run(scale: str, out: Path) -> None:
    """Train, tabulate, draw."""
    fields = dict(CASES[scale])
    seeds = fields.pop("seeds")
    grid = jd.grid(Training, lr=RATES, decay=[2e-4, 0.0], **fields)
    ds = experiment.sweep(out, "runs", stages.trial, grid, seeds, chunk=seeds)
    title = f"M = {fields['group']}, {fields['share']:.0%} of the pairs, medians of {seeds} seeds; {FIGURE_3}"
    experiment.table(out, "levels", levels(ds), f"Epochs at which accuracies reach a level; {title}")
    experiment.table(out, "stages", events(ds), title)
    experiment.figure(out, "li2_fig3", lambda fig: draw(ds, fig), (13.0, 7.5))
    experiment.save(out, "li2_fig3", ds)


def levels(ds: xr.Dataset) -> list[dict]:
    """One line for each decay and rate: when accuracies are reached by half of the runs."""
    lines = []
    for decay, lr in itertools.product(ds.decay.values, ds.lr.values):
        row = {"decay": float(decay), "rate": float(lr)}
        for part, level in LEVELS:
            curve = ds[f"curve_{part}_accuracy"].sel(lr=lr, decay=decay)
            hit = (curve >= level).transpose("seed", "epoch").values
            at = float(np.median(np.where(hit.any(1), ds.epoch.values[hit.argmax(1)], np.inf)))
            row |= {f"{part} {level}": "never" if np.isinf(at) else at}
        lines.append(row | {"before, M = 71": BEFORE.get((lr, decay)), "test, end": float(curve.isel(epoch=-1).median())})
    return lines


def events(ds: xr.Dataset) -> list[dict]:
    """One line for each rate and decay: what is largest when, and overlaps."""
    lines = []
    for decay, lr in itertools.product(ds.decay.values, ds.lr.values):
        one = ds.sel(lr=lr, decay=decay)
        sent = one.curve_sent.transpose("seed", "epoch")
        row = {"decay": float(decay), "rate": float(lr), "V first": f"{int((one.peak_v < one.peak_w).sum())} of {ds.sizes['seed']}"}
        row |= {f"{name.upper()} changes most at": float(one[f"peak_{name}"].median()) for name in ("v", "w")}
        row |= {"|G_F| largest at": float(np.median(ds.epoch.values[sent.argmax("epoch").values]))}
        sizes = {"start": sent[:, 0], "largest": sent.max("epoch"), "end": sent[:, -1]}
        row |= {f"|G_F|, {name}": float(size.median()) for name, size in sizes.items()}
        row |= {f"{name}, off diagonal": float(one[f"measured_{name}"].max()) for name in ("nodes", "samples")}
        lines.append(row | {"paper": f"<= {OFF_DIAGONAL}"})
    return lines


def draw(ds: xr.Dataset, fig: Figure) -> None:
    """A row for each rate: accuracies, |G_F|, changes of both layers, overlaps; dashed without decay."""
    columns = {
        "accuracy": (("train_accuracy", "train"), ("test_accuracy", "test")),
        "$|G_F|$": (("sent", "$|G_F|$"),),
        "change between records": (("change_v", "V"), ("change_w", "W")),
        "off diagonal over on it": (("nodes", r"$\tilde F^\top \tilde F$"), ("samples", r"$P F F^\top$")),
    }
    axes = fig.subplots(ds.sizes["lr"], 4, sharex=True, squeeze=False)
    for row, lr in zip(axes, ds.lr.values, strict=True):
        row[3].axhline(OFF_DIAGONAL, linestyle=":", color=plotting.COLORS["control"], label="published bound")
        for ax, (title, curves) in zip(row, columns.items(), strict=True):
            for (name, label), color in zip(curves, plotting.CYCLE, strict=False):
                for decay, style in zip(ds.decay.values, ("-", "--"), strict=True):
                    curve = ds[f"curve_{name}"].sel(lr=lr, decay=decay).isel(epoch=slice(int("change" in name), None))
                    plotting.band(ax, curve.epoch, curve, f"{label}, decay {decay:g}", color, linestyle=style)
            ax.set(title=f"{title}, rate {lr:g}", ylim=(-0.03 if "accuracy" in title else 0, None))
    for ax in axes[:-1].ravel():
        ax.legend([], [])
    fig.supxlabel("epoch", fontsize=10)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
