"""Li2, Figures 6 and 7: which learning rates generalise near the critical share, and the energies of nodes they end with.

"energy": that of a node's direction, over the group's largest maximum (1: one Fourier feature); "with norms": that of its own
weights; means over nodes. Quick: M = 23, 256 nodes; paper: M = 23, 71, 127, 1024 nodes, 15 seeds, M = 127 also with n = 3225.
The talks print E = 4.40 and 4.11 next to two panels without a normalisation: only the order of energies (large rates higher) is
compared. Paper: arXiv 2509.21519.
"""

import itertools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics.retention import order_share
from jaxdyn.theories.li2.interaction.trained_features import ALIVE
from jaxdyn.theories.li2.published import FIGURE_7, PARTIAL
from jaxdyn.theories.li2.training import Training, train

TALKS = ("grokking:li2-boundary-rate", "grokking:li2-boundary-energies")

PAPER = {"23": [0.9, 1.1, 1.4], "71": [0.9, 1.1, 1.4], "127": [0.9, 1.1, 1.4, PARTIAL / 127**2 / order_share(127)]}
RATES = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05]
CASES = {
    "quick": {"seeds": 6, "groups": {"23": [1.1, 1.6]}, "lr": [0.0005, 0.002, 0.01, 0.05, 0.2], "epochs": 1600, "every": 80},
    "paper": {"seeds": 15, "groups": PAPER, "lr": RATES, "hidden": 1024, "epochs": 10000, "every": 500},
}


def trial(s: Training, key: jax.Array) -> jd.Observables:
    """One network: accuracies, and every node's energy over the group's largest maximum (NaN below a tenth of the largest norm)."""
    run, group = train(s, key), parse(s.group)
    w = run.params.w.astype(jnp.float64)
    size, whole = jnp.linalg.norm(w, axis=0), energy.energy(w, group)
    top = max(peak.energy for peak in energy.peaks(decompose(group)))
    alive = size > ALIVE * jnp.max(size)
    e = {"energy": whole / jnp.maximum(size, 1e-30) ** 4 / top, "whole": whole}
    return jd.observables(
        recorded={name: jd.named(run.curves[name], "epoch") for name in ("train_accuracy", "test_accuracy")}
        | {name: jd.named(jnp.where(alive, values, jnp.nan), "node") for name, values in e.items()},
        coords={"epoch": range(0, s.epochs + 1, s.every)},
    )


def run(scale: str, out: Path) -> None:
    """Train, tabulate, draw."""
    fields = dict(CASES[scale])
    seeds, groups = fields.pop("seeds"), fields.pop("groups")
    lines, runs = [], {}
    for name, shares in groups.items():
        grid = jd.grid(Training, group=name, share=shares, critical=True, **fields)
        runs[name] = experiment.sweep(out, "runs", trial, grid, seeds, chunk=seeds)
        lines += rows(name, runs[name])
        experiment.table(out, "rates", lines, f"{fields['epochs']} epochs, {seeds} seeds; {FIGURE_7}")
        experiment.save(out, f"li2_fig7_{name}", runs[name])
    print("The published E = 4.40 and 4.11 have no stated normalisation: only their order is compared.")
    experiment.figure(out, "li2_fig7", lambda fig: draw(runs, fig), (13.0, 3.6 * len(runs)))


def rows(name: str, ds: xr.Dataset) -> list[dict]:
    """One line for each share and rate."""
    lines = []
    for share, lr in itertools.product(ds.share.values, ds.lr.values):
        one = ds.sel(share=share, lr=lr)
        end, count = one.isel(epoch=-1), ds.sizes["seed"]
        low, high = stats.wilson(known := int((end.test_accuracy >= 0.95).sum()), count)
        row = {"M": parse(name).order, "p / p_c": float(share), "rate": float(lr), "generalise": f"{known} of {count}"}
        row |= {"95% from": low, "to": high, "train accuracy": float(end.train_accuracy.median())}
        row |= {"test accuracy": float(end.test_accuracy.median()), "nodes": float(one.energy.count("node").mean())}
        lines.append(row | {"energy": float(one.energy.mean()), "with norms": float(one.whole.mean())})
    return lines


def draw(runs: dict[str, xr.Dataset], fig: Figure) -> None:
    """A row for each group: share of runs that generalise and mean energy over the rate; energies of nodes at one share."""
    for row, (name, ds) in zip(fig.subplots(len(runs), 3, squeeze=False), runs.items(), strict=True):
        general = (ds.test_accuracy.isel(epoch=-1) >= 0.95).mean("seed")
        for share, color in zip(ds.share.values, plotting.CYCLE, strict=False):
            row[0].plot(ds.lr, general.sel(share=share), "o-", color=color)
            plotting.band(row[1], ds.lr, ds.energy.sel(share=share).mean("node"), f"p = {share:.3g} $p_c$", color)
        shown = float(general.var("lr").idxmax("share"))  # where the rate matters most
        for lr, color in zip(ds.lr.values, plotting.RAMP(np.linspace(0, 1, ds.sizes["lr"])), strict=True):
            e = np.sort(ds.energy.sel(share=shown, lr=lr).values, None)
            row[2].plot(e, np.arange(1, e.size + 1) / np.isfinite(e).sum(), color=color, label=f"rate {lr:g}")
        rates = {"xscale": "log", "xlabel": "learning rate", "title": f"M = {parse(name).order}"}
        row[0].set(ylabel="share of runs that generalise", ylim=(-0.04, 1.04), **rates)
        row[1].set(ylabel="mean energy over the maximum", ylim=(0, 1.02), **rates)
        row[2].set(xlabel="energy of a node over the maximum", ylabel="share of nodes below", title=f"p = {shown:.3g} $p_c$")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
