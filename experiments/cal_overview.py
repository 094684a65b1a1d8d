"""Calibration: errors of finite steps on (uv - 1)^2 / 2, stationary SGD noise and the edge of stability, next to reference numbers.

The reference numbers are independent checks in NumPy, one run each; that of the edge is on another target.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.cal import eos, modified_flow, sgd_noise
from jaxdyn.theories.cal import eos as edge_claims
from jaxdyn.theories.cal.orders import distance, error_curve

REFERENCE = {  # step size -> distances at t = 1: to the flow, after the leading error, to the modified flow
    0.1: (0.01238, 9.3e-4, 2.2e-3),
    0.05: (0.00607, 2.2e-4, 5.5e-4),
    0.025: (0.00301, 5.3e-5, 1.4e-4),
}
SHARPNESS = {0.2: 9.012, 0.3: 2.97}
EDGE = {0.02: 0.201, 0.1: 0.991, 0.2: 0.995, 0.4: 0.987}
NAMES = ("flow", "lead", "modified")


def order_rows(ds: xr.Dataset) -> list[dict]:
    """Distances at the end, for every step size, next to the reference."""
    end = ds.sel(start="uv").isel(seed=0, time=-1)
    far = {name: distance(end[f"measured_{name}"] - end[f"predicted_{name}"]) for name in NAMES}
    rows = []
    for eta in ds.eta.values:
        known = REFERENCE.get(float(eta), (None, None, None))
        pairs = {name: (float(far[name].sel(eta=eta)), value) for name, value in zip(NAMES, known, strict=True)}
        columns = {k: v for n, (ours, ref) in pairs.items() for k, v in ((n, ours), (f"reference {n}", ref))}
        rows.append({"eta": float(eta)} | columns)
    return rows


def draw_orders(ds: xr.Dataset, fig: Figure) -> None:
    """Three orders in one figure, over random problems."""
    ax = fig.subplots()
    for (name, order), color in zip((("flow", 1), ("modified", 2), ("lead", 2)), ("measured", "third", "fourth"), strict=True):
        plotting.order(ax, ds.eta, error_curve(ds.sel(start="random"), name), order, f"gradient descent minus {name}", color)
    ax.set_ylabel("distance over the trajectory")
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    ax.legend(once.values(), once.keys())


def single_rows(pairs: xr.Dataset, spread: xr.Dataset) -> list[dict]:
    """Final sharpness of the scalar problem and the stationary variance of SGD."""
    runs = pairs.isel(seed=0)
    ours, exact = float(runs.measured_flow[0]), float(runs.predicted_flow[0])
    rows = [{"quantity": "flow: final sharpness", "ours": ours, "predicted": exact, "reference": 9.1805}]
    for eta, value in SHARPNESS.items():
        end = float(runs.measured_edge.sel(eta=eta))
        rows.append({"quantity": f"eta = {eta}: final sharpness", "ours": end, "predicted": None, "reference": value})
    variance = np.einsum("sii->si", spread.measured_covariance.values).mean()
    exact = float(spread.predicted_covariance[0, 0, 0])
    return [*rows, {"quantity": "SGD: stationary variance", "ours": float(variance), "predicted": exact, "reference": 0.022104}]


def edge_rows(ds: xr.Dataset) -> list[dict]:
    """Sharpness over 2 / step size at the end, over seeds; the reference is one run on another target."""
    ratio = ds.measured_sharpness / ds.predicted_sharpness
    over_seeds = {n: getattr(ratio, n)("seed") for n in ("mean", "min", "max")}
    return [
        {"eta": eta, **{n: float(v.sel(eta=eta)) for n, v in over_seeds.items()}, "reference": ref} for eta, ref in EDGE.items()
    ]


def draw_edge(ds: xr.Dataset, fig: Figure) -> None:
    """The claim's figure, with its legend."""
    edge_claims.plot_mlp(ds, fig)
    fig.axes[0].legend(loc="upper right")


def run(scale: str, out: Path) -> None:
    """Sweep, print the tables next to the reference, draw the figures."""
    seeds, halvings = (64, 8) if scale == "paper" else (8, 5)
    fine = jd.grid(modified_flow.Steps, eta=list(0.1 / 2.0 ** np.arange(halvings)), start=["random", "uv"])
    orders = experiment.sweep(out, "orders", modified_flow.trial, fine, seeds)
    pairs = experiment.sweep(out, "pair", eos.uv_trial, jd.grid(eos.Pair, eta=[0.0125, *SHARPNESS]), 1)
    spread = experiment.sweep(out, "noise", sgd_noise.noise_trial, jd.grid(sgd_noise.Noise), seeds)
    edges = jd.grid(edge_claims.Network, eta=list(EDGE))
    if scale == "paper":
        edges = edges.replace(steps=20000, samples=100, iterations=40)
    network = experiment.sweep(out, "edge", edge_claims.mlp_trial, edges, seeds)
    experiment.table(out, "orders", order_rows(orders), "Distance of gradient descent at t = 1 from (1.5, 0.2)")
    experiment.table(out, "numbers", single_rows(pairs, spread), "Single numbers")
    experiment.table(out, "edge", edge_rows(network), f"Sharpness over 2 / step size, {network.sizes['seed']} seeds")
    experiment.figure(out, "orders", lambda fig: draw_orders(orders, fig))
    experiment.figure(out, "edge", lambda fig: draw_edge(network, fig))
    for name, ds in (("orders", orders), ("pair", pairs), ("noise", spread), ("edge", network)):
        experiment.save(out, name, ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
