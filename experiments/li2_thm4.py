"""Li2: how many random pairs keep a maximum of the energy (arXiv:2509.21519, theorem 4)? An open measurement.

Nodes start at exact maxima on all pairs and follow the flow of three energies on random pairs: cross term alone, whole, whitened.
Curves of retention over the number of pairs, the fraction p_50 that keeps half of the maxima with its interval, its slope over
ln M / M and the exponent of the degree: 1 and 2 for the number of pairs that the theorem proves to be enough, which more than are
needed may be. "before": an earlier measurement of our own, on 5 subsets (plain: 6) and a coarse grid.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.features import median_share, thm4_retention
from jaxdyn.theories.li2.features.thm4_retention import Retention, split_start, trial

TALKS = ("grokking:li2-theorem-4",)

SCALES = {
    "quick": {
        "groups": ("11", "23", "47"),
        "degrees": ("D12/1", "D12/2", "S4/3"),
        "seeds": 2,
        "subsets": 32,
        "steps": 300,
    },
    "paper": {
        "groups": ("11", "23", "47", "71", "101", "151", "251"),
        "degrees": ("D120/1", "D120/2", "2x2xA5/3", "2x2xA5/5"),
        "seeds": 4,
        "subsets": 32,
        "steps": 600,
    },
}
BEFORE = {"cross": {23: 0.29, 47: 0.21, 71: 0.18}, "whitened": {23: 0.37, 47: 0.24, 71: 0.21}}
BEFORE["plain"] = {23: "0.37-0.68", 47: "0.41-0.57", 71: "0.36-0.48+"}
RUNS = 8  # that a stopped sweep can lose


def run(scale: str, out: Path) -> None:
    """Sweep every start, then the tables and figures."""
    case = SCALES[scale] | {"c": thm4_retention.C[scale], "spread": thm4_retention.SPREADS[scale]}
    cyclic, degrees = (
        xr.concat([swept(out, start, case) for start in case[which]], "start", data_vars="all") for which in ("groups", "degrees")
    )
    experiment.table(out, "halves", rows(cyclic), "p_50: fraction of the pairs that keeps half of the maxima")
    experiment.table(
        out, "slopes", slopes(cyclic), "Slope of ln p_50; of the number that theorem 4 proves to be enough: 1 over ln(ln M / M)"
    )
    experiment.table(out, "degrees", by_degree(degrees), "The degree d; exponent 2 is enough by theorem 4, the authors' sweeps: 1")
    experiment.figure(out, "li2_thm4", lambda fig: draw_curves(cyclic, fig), (12.0, 3.6))
    experiment.figure(out, "li2_thm4_halves", lambda fig: draw_halves(cyclic, degrees, fig), (10.0, 3.8))
    experiment.save(out, "groups", cyclic)
    experiment.save(out, "degrees", degrees)


def swept(out: Path, start: str, case: dict) -> xr.Dataset:
    """One start over all c."""
    fields = {name: case[name] for name in ("c", "spread", "subsets", "steps")}
    grid = jd.grid(Retention, starts=(start,), **fields)
    return experiment.sweep(out, start.replace("/", "_d"), trial, grid, case["seeds"], chunk=RUNS).drop_vars("status")


def rows(ds: xr.Dataset) -> list[dict]:
    """One line for every energy and M."""
    halved = median_share.halves(ds)
    low, high = halved.interval()
    main = median_share.LEVELS.index(median_share.MAIN)
    table = []
    for k, kind in enumerate(ds.object.values):
        for i, m in enumerate(orders(ds)):
            row = {"energy": kind, "M": int(m), "p_50": halved.p[k, i, main], "low": low[k, i, main], "high": high[k, i, main]}
            row |= {"before": BEFORE[kind].get(int(m)), "c_50": halved.p[k, i, main] * m / np.log(m)}
            row |= {f"p_50, mass > {t:g}": halved.p[k, i, j] for j, t in enumerate(median_share.LEVELS) if t != median_share.MAIN}
            moving = ds.gradient.isel(object=k, start=i) > 1e-3
            table.append(row | {"still moving": float(moving.mean())})
    return table


def slopes(ds: xr.Dataset) -> list[dict]:
    """One line for every energy and threshold."""
    halved, m = median_share.halves(ds), orders(ds)
    table = []
    for k, kind in enumerate(ds.object.values):
        for j, t in enumerate(median_share.LEVELS):
            row = {"energy": kind, "mass >": t}
            for name, x in (("over ln(ln M / M)", np.log(np.log(m) / m)), ("over ln M", np.log(m))):
                p = np.concatenate([halved.p[k, :, j, None], halved.drawn[k, :, j]], 1)
                row |= dict(zip((name, f"{name}, low", f"{name}, high"), median_share.slope(x, p), strict=True))
            table.append(row)
    return table


def by_degree(ds: xr.Dataset) -> list[dict]:
    """One line for every start; the exponents of all starts together in the last."""
    halved, m = median_share.halves(ds, (median_share.MAIN,), above_chance=True), orders(ds)
    low, high = halved.interval()
    c = halved.p[..., 0] * m / np.log(m)
    degree = np.array([split_start(str(start))[1] for start in ds.start.values], float)
    table = []
    for i, start in enumerate(ds.start.values):
        row = {"start": str(start), "M": str(int(m[i])), "d": str(int(degree[i])), "share": float(ds.share.isel(start=i).mean())}
        for k, kind in enumerate(ds.object.values):
            row |= {f"p_50, {kind}": f"{halved.p[k, i, 0]:.3f} [{low[k, i, 0]:.3f}, {high[k, i, 0]:.3f}]", f"c_50, {kind}": c[k, i]}
        table.append(row)
    last = {"start": "exponent of d", "M": "", "d": "", "share": None}
    for k, kind in enumerate(ds.object.values):
        drawn = np.concatenate([halved.p[k], halved.drawn[k, :, 0]], 1) * (m / np.log(m))[:, None]
        value, least, most = median_share.slope(np.log(degree), drawn)
        last |= {f"p_50, {kind}": f"{value:.2f} [{least:.2f}, {most:.2f}]", f"c_50, {kind}": None}
    return [*table, last]


def orders(ds: xr.Dataset) -> np.ndarray:
    """M of every start."""
    return np.array([parse(split_start(str(start))[0]).order for start in ds.start.values], float)


def draw_curves(ds: xr.Dataset, fig: Figure) -> None:
    """The share retained over c with 95% intervals, one panel for each energy, one line for each M."""
    kept = (ds.measured_mass > median_share.MAIN).stack(unit=("seed", "subset"))
    for k, (ax, kind) in enumerate(zip(fig.subplots(1, ds.sizes["object"], sharey=True), ds.object.values, strict=True)):
        for i, m in enumerate(orders(ds)):
            counts = kept.sel(object=kind).isel(start=i).sum("unit").values
            possible = ds.c.values <= m / np.log(m)  # beyond, the subset is everything
            low, high = np.array([stats.wilson(int(x), kept.sizes["unit"]) for x in counts]).T
            y, color = counts / kept.sizes["unit"], plotting.RAMP(i / max(ds.sizes["start"] - 1, 1))
            ax.errorbar(ds.c.values[possible], y[possible], np.maximum([y - low, high - y], 0)[:, possible], fmt="o-", capsize=2,
                        color=color, linewidth=1.2, label=f"M = {m:g}" if k == 0 else None)  # fmt: skip
        ax.set(xscale="log", xlabel=r"$c = p\,M / \ln M$", title=str(kind))
        median_share.few_ticks(ax.xaxis)
        ax.axhline(0.5, linestyle=":", color=plotting.COLORS["control"])
    fig.axes[0].set(ylabel="share retained")


def draw_halves(ds: xr.Dataset, degrees: xr.Dataset, fig: Figure) -> None:
    """p_50 over M, with the earlier values as crosses, and c_50 over the degree."""
    left, right = fig.subplots(1, 2)
    median_share.plot_halves(left, ds)
    for kind in ("cross", "whitened"):
        left.plot(*zip(*BEFORE[kind].items(), strict=True), "x", color=plotting.COLORS[median_share.COLORS[kind]], markersize=8)
    left.plot([], [], "x", color=plotting.COLORS["control"], label="before, 5 subsets")
    left.set_xticks(ticks := sorted({*orders(ds), *BEFORE["cross"]}), [f"{m:g}" for m in ticks])
    halved, m = median_share.halves(degrees, (median_share.MAIN,), above_chance=True), orders(degrees)
    d = np.array([split_start(str(start))[1] for start in degrees.start.values], float)
    scale = m / np.log(m)
    low, high = halved.interval()
    for k, kind in enumerate(degrees.object.values):
        c = halved.p[k, :, 0] * scale
        error = [c - low[k, :, 0] * scale, high[k, :, 0] * scale - c]
        right.errorbar(d, c, error, fmt="o-", capsize=2.5, color=plotting.COLORS[median_share.COLORS[str(kind)]], label=str(kind))
    right.plot(d, scale, "_", markersize=14, color=plotting.COLORS["failed"], label="all pairs")
    c = halved.p[0, 0, 0] * scale[0]
    right.plot(d, c * (d / d[0]) ** 2, "--", color=plotting.COLORS["control"], label=r"$\propto d^2$")
    right.set(xscale="log", yscale="log", xlabel="degree d", ylabel=r"$c_{50}$")
    right.set_xticks(sorted(set(d)), [f"{x:g}" for x in sorted(set(d))])
    right.xaxis.set_minor_formatter(NullFormatter())
    median_share.few_ticks(right.yaxis)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
