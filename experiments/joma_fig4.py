"""Figure 4 of JoMA (arXiv:2310.00535): attention first concentrates, then spreads again; and where the bounce is deep.

Three sweeps of the same trial: the figure's own critical point, random draws, and a map over the softmax temperature T and
the spread of the critical values (1: uniform in [1, 4); 0: all equal). Reference numbers are those of the recursion behind the
published figure; of random draws only the range over five is known.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.joma.nonlinear.fig4_bounce import Bounce, plot_snapshots, trial
from jaxdyn.theories.joma.published import FIG4

TALKS = ("training:joma-figure-4",)

DRAWS = {"quick": 64, "paper": 1024}
MAP_DRAWS = {"quick": 8, "paper": 64}
TEMPERATURES = [1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0]
SPREADS = [0.2, 0.4, 0.6, 0.8, 1.0, 1.2]


def run(scale: str, out: Path) -> None:
    own = experiment.sweep(out, "fig4", trial, jd.grid(Bounce, draw="fig4"), 1)
    draws = experiment.sweep(out, "draws", trial, jd.grid(Bounce), DRAWS[scale])
    grid = jd.grid(Bounce, temperature=TEMPERATURES, spread=SPREADS)
    spread = experiment.sweep(out, "map", trial, grid, MAP_DRAWS[scale])
    own, draws, spread = (ds.where(ds.status == 0) for ds in (own, draws, spread))
    experiment.table(out, "numbers", numbers(own.isel(seed=0), draws), "Entropy bounce: ours next to the published figure")
    depth = (spread.predicted_limit - spread.lowest).median("seed").transpose("temperature", "spread")
    rows = [{"T": float(t), **{f"spread {s:g}": float(depth.sel(temperature=t, spread=s)) for s in SPREADS}} for t in TEMPERATURES]
    experiment.table(out, "depth", rows, "Depth of the bounce, limit − minimum (nats), median over draws")
    experiment.figure(out, "fig4", lambda fig: draw(fig, own.isel(seed=0), draws, depth), (10.5, 3.5))
    summary = {"depth": depth, "lowest": draws.lowest, "lowest_at": draws.lowest_at, "entropy": draws.measured_entropy}
    experiment.save(out, "summary", xr.Dataset({k: v.reset_coords(drop=True) for k, v in summary.items()}))


def numbers(own: xr.Dataset, draws: xr.Dataset) -> list[dict]:
    """The figure's own numbers next to ours, and the range over random draws."""
    low, at, last = FIG4.values()
    ours = (("entropy at the minimum", own.lowest, low), ("step of the minimum", own.lowest_at, at))
    ours += (("entropy at step 4999", own["last"], last), ("limit of the entropy", own.measured_limit, 1.6216))
    rows = [{"quantity": name, "ours": float(value), "paper": paper} for name, value, paper in ours]
    for name, values, paper in (
        ("minimum", draws.lowest, ".87–1.92 (5 draws)"),
        ("its step", draws.lowest_at, "645–1002 (5 draws)"),
    ):
        text = f"{float(values.min()):.4g}–{float(values.max()):.4g}"
        rows.append({"quantity": f"{name}, {int(values.count())} random draws", "ours": text, "paper": paper})
    return rows


def draw(fig: Figure, own: xr.Dataset, draws: xr.Dataset, depth: xr.DataArray) -> None:
    left, middle, right = fig.subplots(1, 3)
    plot_snapshots(left, own)
    plotting.band(
        middle, draws.t.isel(seed=0), draws.measured_entropy.transpose("seed", "time"), f"{draws.sizes['seed']} random draws"
    )
    middle.plot(own.t, own.measured_entropy, color=plotting.COLORS["third"], label="the figure's draw")
    middle.plot(own.t, own.predicted_entropy, "--", color=plotting.COLORS["theory"], label="exact solution")
    middle.set(xlabel="steps × step size", ylabel="entropy of the attention (nats)")
    middle.legend()
    image = right.pcolormesh(np.arange(len(SPREADS)), np.arange(len(TEMPERATURES)), depth, cmap=plotting.RAMP)
    right.set_xticks(np.arange(len(SPREADS)), SPREADS)
    right.set_yticks(np.arange(len(TEMPERATURES)), TEMPERATURES)
    right.set(xlabel=r"spread of $\mu$", ylabel="temperature T")
    right.grid(False)
    fig.colorbar(image, ax=right, label="depth of the bounce (nats)")


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
