r"""Claims on Theorem 1 for exp and linear attention: the laws along flow and descent, their exact discrete forms, many queries.

Letters as in ``model.py`` and ``dynamics/invariants.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.trials.one_block import OneBlock, identity_trial, invariant_trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_identity", "judge_law", "single_query_law", "wrong_ratio"]

SLIDING = 0.95  # the gradient flow of ReLU can slide along a kink, where it is not defined: such runs end at the step limit


def residual(ds: xr.Dataset) -> xr.DataArray:
    """Largest difference of the law's sides along the flow, over the largest size of the logits' side."""
    axes = ["time", "token"]
    return abs(ds.measured_flow - ds.predicted_flow).max(axes) / abs(ds.measured_flow).max(axes)


def descent_drift(ds: xr.Dataset) -> xr.DataArray:
    """Drift of the law along descent: root mean square over times and tokens."""
    return np.sqrt(((ds.measured_descent - ds.predicted_descent) ** 2).mean(["time", "token"]))


def judge_law(ds: xr.Dataset) -> list[jd.Check]:
    """The law holds along the flow to the solver's error, and its drift along descent is first order in the step size."""
    order = stats.loglog_slope(1 / ds.refinement, descent_drift(ds), "refinement")
    return [
        jd.at_most("residual along the flow / size", residual(ds), 1e-8),
        jd.within("order of the drift in the step size", order, 0.85, 1.15),
    ]


def judge_identity(ds: xr.Dataset) -> list[jd.Check]:
    """Both sides of the discrete identity agree to rounding, for logits of order one."""
    difference = abs(ds.measured_drift - ds.predicted_drift).max(["time", "token"])
    return [jd.at_most("difference of the two sides", difference, 1e-11)]


def plot_law(ds: xr.Dataset, fig: Figure) -> None:
    """Left: the logits' side against the law along the flow; right: the drift of descent against its step size."""
    left, right = fig.subplots(1, 2)
    change = [ds[f"{side}_flow"] - ds.predicted_flow.isel(time=0) for side in ("predicted", "measured")]
    plotting.scatter(left, change[0].isel(time=-1), change[1].isel(time=-1), label="gradient flow, end of run")
    left.set_xlabel("change predicted from the weights")
    left.set_ylabel("change of the logits' side")
    plotting.order(right, 1 / ds.refinement, descent_drift(ds), slope=1.0, label="descent, all runs")
    right.set_xlabel("step size / largest step size")
    right.set_ylabel("drift of the law")


def plot_identity(ds: xr.Dataset, fig: Figure) -> None:
    """Drift of the law against the sum over the increments."""
    ax = fig.subplots()
    plotting.scatter(ax, abs(ds.predicted_drift).isel(time=-1), abs(ds.measured_drift).isel(time=-1), label="end of run", log=True)
    ax.set_xlabel("|sum of squared increments|")
    ax.set_ylabel("|drift of the law|")


def _movement_scaled(ds: xr.Dataset, factor: float | xr.DataArray) -> xr.Dataset:
    """Predicted changes of the logits' side times a factor."""
    starts = {name: ds[name].isel(time=0) for name in ("predicted_flow", "predicted_descent")}
    return ds.assign({n: (start + factor * (ds[n] - start)).transpose(*ds[n].dims) for n, start in starts.items()})


def single_query_law(ds: xr.Dataset) -> xr.Dataset:
    """The single-query law for each query: the predicted change of the sum is multiplied by the number of queries."""
    return _movement_scaled(ds, ds.queries)


def wrong_ratio(ds: xr.Dataset) -> xr.Dataset:
    """The law with a ratio of learning rates (or an inverse temperature) that is 10% too large."""
    return _movement_scaled(ds, 1.1)


BREACHES = {
    "embeddings not orthonormal": {"noise": 0.3},
    "weight decay": {"weight_decay": 0.1},
    "Adam": {"optimizer": "adam"},
    "two queries, law of one": {"queries": 2},
    "ratio 10% too large": wrong_ratio,
}
GRID = jd.grid(OneBlock, phi=list(model.ACTIVATIONS), ratio=[0.1, 1.0, 10.0], nodes=[1, 2])
SCOPE = (
    r"for nodes with identity, ReLU, tanh or GELU, a trained upper layer, and ratios $r$ of learning rates from .1 to 10: to the "
    r"solver's error along gradient flow, and to first order in the step size along gradient descent."
)
LAWS = jd.Study(
    trial=invariant_trial,
    quick=GRID,
    seeds=8,
    paper_seeds=64,
    source="arXiv:2310.00535, Theorem 1",
    judge=judge_law,
    min_ok=SLIDING,
    plot=plot_law,
    caption=r"Left: change of the logits' side of the law over a run of gradient flow, against the change predicted from the "
    r"weights; one point per token and run. Right: drift of the law along gradient descent (root mean square over times and "
    r"tokens) against the step size; points are medians over the runs, bars their full range, the dashed line has slope 1.",
)
IDENTITY = jd.Study(
    trial=identity_trial,
    quick=jd.grid(
        OneBlock,
        attention=["exp", "linear"],
        phi=list(model.ACTIVATIONS),
        ratio=[0.1, 1.0, 10.0],
        fraction=[0.4, 1.0],
        lr=0.05,
        horizon=10.0,
    ),
    seeds=8,
    paper_seeds=64,
    source="derived from arXiv:2310.00535, Theorem 1, for finite step sizes",
    judge=judge_identity,
    plot=plot_identity,
    caption=r"Drift of the law at the end of a run of (stochastic) gradient descent, against the sum over its steps of squared "
    r"increments; one point per token and run.",
)

CLAIMS = (
    LAWS.claim(
        id="joma.exp_invariant",
        statement=rf"With exp attention, joint training conserves $z - \frac{{r}}{{2\tau}}\sum_k v_k^2$, {SCOPE}",
        source="arXiv:2310.00535, Theorem 1, exp attention",
        quick=GRID.replace(attention="exp"),
        controls=BREACHES,
    ),
    LAWS.claim(
        id="joma.linear_invariant",
        statement=rf"With linear attention, joint training conserves $z^2 - r\sum_k v_k^2$, {SCOPE}",
        source="arXiv:2310.00535, Theorem 1, linear attention",
        quick=GRID.replace(attention="linear"),
        controls=BREACHES,
    ),
    LAWS.claim(
        id="joma.multi_query",
        statement=r"When the samples of a batch have several queries, which share the lower layer, the conserved quantity is the "
        r"sum over queries: $\sum_m z_m = \frac{r}{2\tau}\sum_k v_k^2 + c$ (exp) and $\sum_m z_m^2 = r\sum_k v_k^2 + c$ (linear).",
        source="derived from arXiv:2310.00535, Theorem 1 (sum over queries)",
        quick=jd.grid(OneBlock, attention=["exp", "linear"], phi=["relu", "tanh"], ratio=[0.1, 10.0], queries=[2, 3], law="sum"),
        controls={
            "law of one query": {"law": "query"},
            "law of one query, for each": single_query_law,
            "embeddings not orthonormal": {"noise": 0.3},
        },
    ),
    IDENTITY.claim(
        id="joma.discrete_identity",
        statement=r"Plain gradient descent, on the full batch or on random mini-batches, changes the quantities of Theorem 1 by "
        r"exactly $-\frac{r}{2\tau}\sum_s\sum_k(\Delta v_{k,s})^2$ (exp attention) and $\sum_s(\Delta z_s)^2 - "
        r"r\sum_s\sum_k(\Delta v_{k,s})^2$ (linear attention), sums over the steps $s$.",
        controls={"momentum": {"optimizer": "momentum"}, "Adam": {"optimizer": "adam"}, "weight decay": {"weight_decay": 0.1}},
    ),
)
