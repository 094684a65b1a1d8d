"""Reversal curse in the bilinear model under gradient flow (arXiv:2405.04669, Theorems 1 and 2).

How closely the reverse loss follows the loss, as an exponent for each run, over the dimension d of the token vectors; both losses
along the flow; and the two controls that break the curse, a symmetric Theta and reverse training. Reference numbers: an
independent run with 12 seeds (4 at d = 200).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.rev.bil_ratio import Bilinear, largest, ratio_exponent, trial

SEEDS = {"quick": 40, "paper": 100}
GRIDS = {
    "quick": jd.grid(Bilinear, d=[20, 50, 100, 200]),
    "paper": jd.grid(Bilinear, d=[16, 20, 32, 50, 64, 100, 128, 200, 256, 512, 1024], max_d=1024),
}
REFERENCE = {  # rms, 90th percentile and maximum over seeds of the largest exponent of a run
    20: (0.075, 0.140, 0.157),
    50: (0.022, 0.034, 0.038),
    100: (0.018, 0.026, 0.032),
    200: (None, None, 0.0066),
}
CONTROLS = {"symmetric": {"symmetric": 1.0}, "both_directions": {"reverse": 1.0}}


def run(scale: str, out: Path) -> None:
    grid = GRIDS[scale]
    ds = experiment.sweep(out, "flow", trial, grid, SEEDS[scale])
    controls = {name: experiment.sweep(out, name, trial, grid.replace(**field), SEEDS[scale]) for name, field in CONTROLS.items()}
    experiment.table(
        out, "exponents", rows(ds), f"Largest exponent of a run over t = 3, ..., 1000; {SEEDS[scale]} seeds, n = 5, m = 20"
    )
    experiment.table(out, "controls", control_rows(ds, controls), "Last losses and exponents at t = 1000, mean over seeds")
    experiment.figure(out, "rev_bilinear", lambda fig: draw(fig, ds, controls), (11.0, 3.8))
    experiment.save(out, "runs", ds)


def rows(ds: xr.Dataset) -> list[dict]:
    """Root mean square, 90th percentile and maximum over seeds next to the reference."""
    table = []
    for d in ds.d.values:
        worst = largest(ds.sel(d=d)).values
        ours = (float(np.sqrt(np.mean(worst**2))), float(np.quantile(worst, 0.9)), float(worst.max()))
        known = REFERENCE.get(int(d), (None, None, None))
        row = {"d": int(d)}
        for name, value, reference in zip(("rms", "p90", "max"), ours, known, strict=True):
            row |= {name: value, f"reference {name}": reference}
        table.append(row | {"negative at the end": f"{float((ratio_exponent(ds.sel(d=d)).isel(time=-1) < 0).mean()):.0%}"})
    return table


def control_rows(ds: xr.Dataset, controls: dict[str, xr.Dataset]) -> list[dict]:
    """Both losses and the exponent at the end, with and without the breaches."""
    table = []
    for name, data in {"one direction": ds, **controls}.items():
        for d in data.d.values:
            end = data.sel(d=d).isel(time=-1)
            exponent = ratio_exponent(data.sel(d=d)).isel(time=-1)
            numbers = {"L": end.measured_forward, "L_rev": end.measured_reverse, "exponent": exponent}
            table.append({"training": name.replace("_", " "), "d": int(d)} | {k: float(v.mean()) for k, v in numbers.items()})
    return table


def draw(fig: Figure, ds: xr.Dataset, controls: dict[str, xr.Dataset]) -> None:
    """Exponents over time for every d; the largest of every run over d; losses against each other, with the controls."""
    left, middle, right = fig.subplots(1, 3)
    exponent, t = ratio_exponent(ds), ds.t.isel(seed=0, d=0).values[1:]
    rms = np.sqrt((exponent**2).mean("seed")).transpose("d", "time")
    plotting.lines(left, t, rms.values, color_by=ds.d.values, name="d", marker="o")
    left.set(xscale="log", yscale="log", xlabel="time t", ylabel=r"rms of $\epsilon_t$ over seeds")
    worst = largest(ds).transpose("seed", "d").values
    middle.plot(np.broadcast_to(ds.d, worst.shape).ravel(), worst.ravel(), ".", color=plotting.COLORS["measured"], label="runs")
    size = np.sqrt((worst**2).mean(0))
    middle.plot(ds.d, size, "-o", color=plotting.COLORS["third"], label="root mean square")
    slope = np.polyfit(np.log(ds.d.values), np.log(size), 1)
    fitted = np.exp(np.polyval(slope, np.log(ds.d.values)))
    middle.plot(ds.d, fitted, "--", color=plotting.COLORS["theory"], label=f"slope {slope[0]:.2f}")
    known = {d: v[0] for d, v in REFERENCE.items() if v[0] is not None}
    middle.plot(list(known), list(known.values()), "x", color=plotting.COLORS["failed"], label="reference rms")
    middle.set(xscale="log", yscale="log", xlabel="d", ylabel=r"largest $\epsilon_t$ of a run", ylim=(1e-3, None))
    middle.set_xticks(ds.d.values, [f"{d:g}" for d in ds.d.values])
    middle.minorticks_off()
    shown = {f"d = {d:g}": (ds.sel(d=d), c) for d, c in zip(ds.d.values[[0, -1]], ("fourth", "measured"), strict=True)}
    shown |= {f"{n.replace('_', ' ')}, d = {ds.d.values[-1]:g}": (x.isel(d=-1), "control") for n, x in controls.items()}
    for (label, (part, color)), style in zip(shown.items(), ("-", "-", "--", ":"), strict=True):
        forward, reverse = (part[f"measured_{k}"].transpose("time", "seed").values for k in ("forward", "reverse"))
        right.plot(forward[:, :12], reverse[:, :12], style, color=plotting.COLORS[color], linewidth=0.8, alpha=0.8)
        right.plot([], [], style, color=plotting.COLORS[color], label=label)
    right.set(xscale="log", yscale="log", xlabel="loss L", ylabel=r"reverse loss $L_\mathrm{rev}$")
    right.invert_xaxis()
    for ax in (left, middle, right):
        ax.legend(fontsize=7)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
