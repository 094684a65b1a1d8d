"""CoGO: how potentials decouple with width, and how exponential their relaxation is.

The metric J J^* of the cross potentials at random weights against the exact mean of its off-diagonal part, next to the potentials
with both factors of one layer, which stay coupled; then gradient flow of the cross terms of the loss, of the whole loss, and of the
cross terms from tied layers. Paper: arXiv 2410.01779, whose theorem gives the limit and no numbers; the columns "check" hold those
of an independent computation with few draws.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.theories.cogo.flow import relax
from jaxdyn.theories.cogo.flow.relax import deviation

METRIC_CHECK = {16: 0.100, 64: 0.055, 256: 0.026, 1024: 0.014, 4096: 0.0072}
FLOW_CHECK = {32: 0.20, 128: 0.09, 512: 0.063, 2048: 0.030}
WHOLE_CHECK = {128: 0.13, 512: 0.078, 2048: 0.045}
TIED_CHECK = {2048: 0.44}
SEEDS = {"quick": (32, 8), "paper": (256, 32)}  # of the metric, of the flow
KINDS = {"cross terms alone": {}, "whole loss": {"loss": "whole"}, "b = a at the start": {"tied": 1.0}}


def metric_rows(ds: xr.Dataset) -> list[dict]:
    """One line per width: ratios of the cross potentials and of the others."""
    rows = []
    for width in ds.width.values:
        one = ds.sel(width=width)
        rows.append(
            {
                "width": int(width),
                "off-diagonal / diagonal": float(one.own_ratio.mean()),
                "sd": experiment.deviation(one.own_ratio),
                "exact mean": float(one.predicted_ratio[0]),
                "check": METRIC_CHECK.get(int(width)),
                "diagonal / (q kappa)": float(one.measured_diagonal.mean()),
                "largest": float(one.largest.mean()),
                "one layer: ratio": float(one.measured_auto_ratio.mean()),
                "one layer: largest": float(one.auto_largest.mean()),
            }
        )
    return rows


def flow_rows(worst: xr.DataArray) -> list[dict]:
    """One line per width: distances from the exponentials for each kind of flow."""
    rows = []
    checks = dict(zip(KINDS, (FLOW_CHECK, WHOLE_CHECK, TIED_CHECK), strict=True))
    for width in worst.width.values:
        row = {"width": int(width)}
        for kind in KINDS:
            values = worst.sel(kind=kind, width=width)
            row |= {
                kind: float(values.mean()),
                f"{kind}: sd": experiment.deviation(values),
                f"{kind}: check": checks[kind].get(int(width)),
            }
        rows.append(row)
    return rows


def draw_metric(ds: xr.Dataset, fig: Figure) -> None:
    """Left the root mean square of the off-diagonal part, right its largest entry."""
    left, right = fig.subplots(1, 2)
    plotting.order(left, ds.width, ds.own_ratio, label="cross potentials", color="measured")
    plotting.order(left, ds.width, ds.measured_auto_ratio, label=r"$r_{p,k',-k',k}$", color="fourth")
    left.plot(ds.width, ds.predicted_ratio.mean("seed"), color=plotting.COLORS["theory"], label="exact mean")
    plotting.order(right, ds.width, ds.largest, label="cross potentials", color="measured")
    plotting.order(right, ds.width, ds.auto_largest, label=r"$r_{p,k',-k',k}$", color="fourth")
    left.set(xlabel="width q", ylabel=r"rms off-diagonal / diagonal of $JJ^*$")
    right.set(xlabel="width q", ylabel="largest off-diagonal / diagonal")
    for ax in (left, right):
        ax.set_xticks(ds.width.values, [f"{w:g}" for w in ds.width.values])


def draw_curves(ds: xr.Dataset, fig: Figure) -> None:
    """A few potentials of one run along time, narrowest and widest network."""
    for ax, width in zip(fig.subplots(1, 2, sharex=True), (ds.width.values[0], ds.width.values[-1]), strict=True):
        one = ds.isel(seed=0).sel(width=width, part="re")
        order = np.argsort(one.measured_r.isel(turns=0).values)[np.linspace(0, one.sizes["potential"] - 1, 6).astype(int)]
        for n, (i, color) in enumerate(zip(order, plotting.CYCLE, strict=True)):
            ax.plot(one.turns, one.measured_r.isel(potential=i), "o", color=color, label="gradient flow" if n == 0 else None)
            ax.plot(one.turns, one.predicted_r.isel(potential=i), "--", color=color, label="exponential" if n == 0 else None)
        ax.set(title=f"q = {width:g}", xlabel=r"$\lambda t$", ylabel="Re r")


def draw_flow(worst: xr.DataArray, fig: Figure) -> None:
    """Distance from the exponentials over widths, with the numbers of the check as crosses."""
    ax = fig.subplots()
    checks = (FLOW_CHECK, WHOLE_CHECK, TIED_CHECK)
    for kind, check, color in zip(KINDS, checks, ("measured", "third", "control"), strict=True):
        slope = -0.5 if kind == next(iter(KINDS)) else None
        plotting.order(ax, worst.width, worst.sel(kind=kind), slope=slope, label=kind, color=color)
        ax.plot(list(check), list(check.values()), "x", color=plotting.COLORS[color], markersize=8)
    ax.plot([], [], "x", color=plotting.COLORS["control"], label="check")
    ax.set_xticks(worst.width.values, [f"{w:g}" for w in worst.width.values])
    ax.set(xlabel="width q", ylabel="distance from the exponentials")


def run(scale: str, out: Path) -> None:
    """Both studies, their tables, figures and data."""
    draws, flows = SEEDS[scale]
    grid = jd.grid(relax.Wide, width=[float(w) for w in METRIC_CHECK])
    metric = experiment.sweep(out, "metric", relax.decouple_trial, grid, draws)
    grid = jd.grid(relax.Wide, width=[float(w) for w in FLOW_CHECK], nodes=2048)
    flows_by_kind = [
        experiment.sweep(out, f"flow{i}", relax.flow_trial, grid.replace(**kind), flows) for i, kind in enumerate(KINDS.values())
    ]
    flows_by_kind = [ds.squeeze("tied", drop=True) if "tied" in ds.dims else ds for ds in flows_by_kind]
    worst = xr.concat(
        [deviation(ds).max("turns", skipna=False) for ds in flows_by_kind], "kind", coords="minimal", compat="override"
    )
    worst = worst.assign_coords(kind=list(KINDS)).rename("distance")
    slopes = stats.loglog_slope(worst.width, worst.mean("seed"), "width")
    print("slopes over width:", {k: round(float(slopes.sel(kind=k)), 3) for k in KINDS})
    experiment.table(out, "metric", metric_rows(metric), f"J J* at random weights, d = 5, {draws} draws")
    experiment.table(
        out, "flow", flow_rows(worst), f"Distance from the exponentials up to lambda t = {relax.TURNS}, {flows} starts"
    )
    experiment.figure(out, "cogo_decouple", lambda fig: draw_metric(metric, fig), (8.0, 3.6))
    experiment.figure(out, "cogo_relaxation", lambda fig: draw_curves(flows_by_kind[0], fig), (8.0, 3.6))
    experiment.figure(out, "cogo_distance", lambda fig: draw_flow(worst, fig))
    experiment.save(out, "cogo_decouple", metric)
    experiment.save(out, "cogo_flow", worst.to_dataset())


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
