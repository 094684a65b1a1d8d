r"""Scan & Snap: where Theorem 3 holds in the network's own flow: its error over eta_Y/eta_Z and the overlap of the classes.

Two classes with two common tokens of equal weight and three distinct tokens each, trained by gradient flow on the network's loss
in (Y, Z). The error is :math:`r / (r_0 e^{2z}) - 1` for the most against the least probable distinct token, where the former's
logit passes 0.2 (arXiv 2305.16380, Theorem 3). Cells that do not get there before t = 1e8 stay empty.
"""

import sys
from pathlib import Path

import numpy as np

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.snap.population import Population, residual, trial
from jaxdyn.theories.snap.published import RESIDUALS

SIZES = {"quick": (8, 6), "paper": (20, 20)}


def axes(scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Ratios, and common tokens' weights at equal steps of the overlap f_1 . f_2 at the start."""
    ratios, overlaps = SIZES[scale]
    overlap = np.linspace(0.3, 0.9, overlaps)
    distinct = np.sum(np.linspace(0.4, 1, 3) ** 2)
    return np.geomspace(0.1, 100.0, ratios), np.sqrt(overlap * distinct / (2 * (1 - overlap)))


def rows(ds, error):
    """The map as a table, a row for each ratio."""
    for ratio in ds.ratio.values:
        line = {"eta_Y/eta_Z": float(ratio)}
        for common in ds.common.values:
            value = float(error.sel(ratio=ratio, common=common))
            overlap = float(ds.excess.sel(ratio=ratio, common=common)) / 2
            line[f"f1.f2 = {overlap:.2f}"] = value if np.isfinite(value) else None
        yield line


def published(out: Path) -> None:
    """The table's three ratios at its overlap."""
    ds = experiment.sweep(out, "table", trial, jd.grid(Population, ratio=list(RESIDUALS)), 1).isel(seed=0)
    error = residual(ds).isel(other=0)
    lines = [
        {"eta_Y/eta_Z": ratio, "ours at z = 0.2": float(error.sel(ratio=ratio)), "reference": value, "time": float(at)}
        for (ratio, value), at in zip(RESIDUALS.items(), ds.time, strict=True)
    ]
    experiment.table(out, "published", lines, "Error of Theorem 3 in the network's flow")


def draw(ds, error, fig):
    left, right = fig.subplots(1, 2)
    overlap = (ds.excess / 2).isel(ratio=0).values
    ramp = {"cmap": plotting.RAMP, "norm": "log"}
    image = left.pcolormesh(np.arange(len(overlap)), np.arange(ds.sizes["ratio"]), 100 * abs(error), **ramp)
    steps = [max(1, n // 6) for n in (len(overlap), ds.sizes["ratio"])]
    left.set_xticks(np.arange(len(overlap))[:: steps[0]], [f"{v:.2f}" for v in overlap[:: steps[0]]])
    left.set_yticks(np.arange(ds.sizes["ratio"])[:: steps[1]], [f"{float(f'{v:.2g}'):g}" for v in ds.ratio.values[:: steps[1]]])
    left.set(xlabel="overlap $f_1 \\cdot f_2$ at the start", ylabel=r"$\eta_Y/\eta_Z$ (empty: z = 0.2 not reached)")
    left.grid(False)
    fig.colorbar(image, ax=left, label="error of Theorem 3 (%)")
    shown = np.unique(np.linspace(0, len(overlap) - 1, 6).astype(int))
    curves = 100 * abs(error.isel(common=shown)).transpose("common", "ratio")
    plotting.lines(right, ds.ratio, curves, overlap[shown], "$f_1 \\cdot f_2$")
    right.plot(list(RESIDUALS), [100 * abs(v) for v in RESIDUALS.values()], "x", color=plotting.COLORS["control"], label="table")
    right.set(xscale="log", yscale="log", xlabel=r"$\eta_Y/\eta_Z$", ylabel="error of Theorem 3 (%)")
    right.legend(loc="lower left", ncols=2)


def run(scale: str, out: Path) -> None:
    ratios, commons = axes(scale)
    published(out)
    grid = jd.grid(Population, ratio=ratios, common=commons, horizon=1e8)
    ds = experiment.sweep(out, "map", trial, grid, 1).isel(seed=0)
    error = residual(ds).isel(other=0).where(ds.status == 0)
    experiment.table(out, "map", list(rows(ds, error)), "Error of Theorem 3 at z = 0.2, by ratio and overlap")
    experiment.figure(out, "map", lambda fig: draw(ds, error, fig), (10.0, 4.0))
    experiment.save(out, "map", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
