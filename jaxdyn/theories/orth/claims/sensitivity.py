"""The claim on JoMA's law where embeddings are not orthogonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.orth.trials.sensitivity import Mixture, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "EPSILONS", "judge"]

EPSILONS = [0.0, 0.003, 0.01, 0.03, 0.1, 0.3]
SMALL = 0.1  # up to this the order is fitted


def residual(ds: xr.Dataset) -> xr.DataArray:
    """Largest difference of the law's sides along the flow, over the largest size of the logits' side."""
    axes = ["time", "token"]
    return abs(ds.measured_flow - ds.predicted_flow).max(axes) / abs(ds.measured_flow).max(axes)


def typical(values: xr.DataArray, *kept: str) -> xr.DataArray:
    """Geometric mean over everything but the share of random columns, and the axes ``kept``."""
    return np.exp(np.log(values).mean([d for d in values.dims if d not in ("epsilon", *kept)]))


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The law holds at 0; the residual grows from there on, at first in proportion to the mean |cos|."""
    jd.need(ds, epsilon=4)
    jd.need(ds, epsilon=(0.0,))
    ds = ds.sortby("epsilon")
    broken = ds.isel(epsilon=slice(1, None))
    small = broken.epsilon <= SMALL
    # the other runs of a seed are averaged: the residual is a largest difference, which has kinks in epsilon
    lost, cosine = (typical(values, "seed") for values in (residual(broken), broken.cosine))
    growth = np.log(lost).diff("epsilon")
    order = stats.loglog_slope(cosine.isel(epsilon=small), lost.isel(epsilon=small), "epsilon")
    return [
        jd.at_most("residual / size, orthonormal", residual(ds).isel(epsilon=0), 1e-8),
        jd.mean_within("ln of the residual's growth from one epsilon to the next", growth, over="seed", low=np.log(1.1)),
        jd.mean_within("order of the residual in the mean |cos|", order, over="seed", low=0.85, high=1.15),
    ]


def nothing_moves(ds: xr.Dataset) -> xr.Dataset:
    """The logits keep their start."""
    start = ds.predicted_flow.isel(time=0, drop=True) + 0 * ds.predicted_flow
    return ds.assign(predicted_flow=start.transpose(*ds.predicted_flow.dims))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Residual of the law against the mean |cos| of the embeddings, every run."""
    ax = fig.subplots()
    broken = ds.isel(epsilon=slice(1, None))
    x, y = typical(broken.cosine), residual(broken)
    plotting.band(ax, x, y.transpose(..., "epsilon"), "residual / size, all runs", "measured")
    ax.plot(x, x * float(typical(y)[0] / x[0]), "--", color=plotting.COLORS["theory"], label="first order")
    ax.set(xscale="log", yscale="log", xlabel="mean |cos| of the embeddings", ylabel="residual of the law / size")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Mixture, epsilon=EPSILONS, attention=["exp", "linear"], phi=["id", "tanh"]),
    paper=jd.grid(
        Mixture,
        epsilon=[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
        attention=["exp", "linear"],
        phi=["id", "tanh", "gelu"],
        ratio=[0.1, 1.0, 10.0],
    ),
    seeds=20,
    paper_seeds=64,
    evidence="flow",
    source="derived from arXiv:2310.00535, Theorem 1 without its assumption of orthogonal embeddings",
)

CLAIMS = (
    STUDY.claim(
        id="orth.joma_sensitivity",
        bounds=jd.looked(at="0:32", confirmed="5000:5032"),
        statement=r"JoMA's invariants degrade continuously where embeddings are not orthogonal: with unit columns along "
        r"$U = (1-\epsilon)Q + \epsilon G$, Q orthonormal and G random, the law holds to the solver's error at $\epsilon = 0$, and "
        r"its residual along the gradient flow (geometric mean over runs) grows with the mean |cos| of U, at first in proportion.",
        judge=judge,
        controls={
            "columns never orthogonal": {"floor": 0.1},
            "softmax with the law of exp": {"attention": "softmax"},
        },
        rivals={"nothing moves": nothing_moves},
        plot=plot,
        caption=r"Largest difference of the two sides of the law along the flow, relative to the logits' side, against the mean "
        r"absolute cosine over pairs of embeddings (geometric mean over runs, one value for each $\epsilon > 0$). Line and band: "
        "median and central 90% of the runs; dashed: proportional to the mean |cos| from the first value on.",
    ),
)
