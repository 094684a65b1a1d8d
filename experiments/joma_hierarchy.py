"""In which order attention learns the tokens of a latent tree: by H, with latents and without, for two kinds of outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment
from jaxdyn.plotting import COLORS
from jaxdyn.stats import mean_interval
from jaxdyn.theories.joma.hierarchy.hier_order import Hierarchy, plot_order, rank_correlation, trial

TALKS = ("training:joma-deep-latent", "training:joma-shallow-latent")

NAMES = {"wide": "outputs far from the prior", "exact": "outputs at the prior"}


def rows(ds: xr.Dataset, outputs: str) -> tuple[list[dict], list[dict]]:
    """Rank correlation of arrival and H with its 95% interval; steps of arrival by H next to the stationary theory's."""
    mean, low, high = mean_interval(rank_correlation(ds), "seed")
    times = ds[["measured_time", "predicted_time", "reached"]].mean("seed")
    order, arrival = [], []
    for rho in ds.rho.values:
        for latents in ds.latents.values:
            cell = {"rho": rho, "latents": latents}
            name, at = {"rho": float(rho), "outputs": outputs, "latents": str(latents)}, times.sel(cell)
            interval = {n: round(float(v.sel(cell)), 3) for n, v in (("mean", mean), ("low", low), ("high", high))}
            order.append({**name, **interval, "arrived": float(at.reached.mean())})
            steps = {f"H={h}": round(float(t)) for h, t in zip(ds.height.values, at.measured_time.values, strict=True)}
            theory = {f"th. {h}": round(float(t)) for h, t in zip(ds.height.values, at.predicted_time.values, strict=True)}
            arrival.append({**name, **steps, **theory})
    return order, arrival


def run(scale: str, out: Path) -> None:
    """Train over rho, with and without latents, print the table and draw the figures."""
    rho = [0.6, 0.7, 0.8, 0.9] if scale == "paper" else [0.7, 0.8, 0.9]
    seeds, order, arrival, results = 64 if scale == "paper" else 10, [], [], {}
    for outputs, spacing in (("wide", 4.0), ("exact", 8.0)):
        grid = jd.grid(Hierarchy, rho=rho, latents=["deep", "shallow"], outputs=outputs, spacing=spacing)
        grid = grid.replace(lr=1 / 64, batch=1024) if scale == "paper" else grid
        results[outputs] = experiment.sweep(out, outputs, trial, grid, seeds)
        for table, lines in zip((order, arrival), rows(results[outputs], outputs), strict=True):
            table += lines
        experiment.save(out, outputs, results[outputs])
        experiment.figure(out, f"order_{outputs}", lambda fig, ds=results[outputs]: plot_order(ds.sel(rho=0.8), fig))
    experiment.table(out, "order", order, "Rank correlation of arrival at ln 2 and H")
    experiment.table(out, "arrival", arrival, "Mean step of arrival at ln 2 (a pair that never arrives: the last step + 1)")

    def draw(fig: Figure) -> None:
        ax = fig.subplots()
        for outputs, style in (("wide", "o-"), ("exact", "s--")):
            for latents, color in (("deep", "measured"), ("shallow", "third")):
                mean, low, high = mean_interval(rank_correlation(results[outputs].sel(latents=latents)), "seed")
                label = f"{NAMES[outputs]}, {'with' if latents == 'deep' else 'without'} latents"
                spread = np.stack([mean - low, high - mean])
                ax.errorbar(mean.rho, mean, spread, fmt=style, color=COLORS[color], capsize=3, label=label)
        ax.axhline(0, color=COLORS["control"], linewidth=0.9, linestyle=":")
        ax.set(xlabel=r"$\rho$", ylabel="rank correlation of arrival and H")
        ax.set_ylim(top=0.85)
        ax.legend(ncols=2, loc="upper center")

    experiment.figure(out, "rank_correlation", draw)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
