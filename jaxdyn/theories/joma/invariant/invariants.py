r"""Theorem 1 for exp and linear attention, and what all training with softmax attention conserves.

The laws along flow and descent, their exact discrete forms, many queries, weight decay. Letters as in ``model.py`` and
``dynamics/invariants.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.invariant.one_block import Elementwise, OneBlock, identity_trial, invariant_trial

HORIZON = 10.0  # number of steps times the larger learning rate, for the exact identities
ROUNDING = 3e-13  # of a drift, for logits of order one
SLIDING = 0.95  # the gradient flow of ReLU can slide along a kink, where it is not defined: such runs end at the step limit


def residual(ds: xr.Dataset) -> xr.DataArray:
    """Largest difference of the law's sides along the flow, over the largest size of the logits' side."""
    axes = ["time", "token"]
    return abs(ds.measured_flow - ds.predicted_flow).max(axes) / abs(ds.measured_flow).max(axes)


def descent_drift(ds: xr.Dataset) -> xr.DataArray:
    """Drift of the law along descent: root mean square over times and tokens."""
    return np.sqrt(((ds.measured_descent - ds.predicted_descent) ** 2).mean(["time", "token"]))


def judge_law(ds: xr.Dataset) -> list[jd.Check]:
    """The law holds along the flow to the solver's error, and its drift along descent is first order in the step size.

    Runs that hardly move, whose drift is rounding, have no order and are left out; a gate bounds their share.
    """
    drift = descent_drift(ds)
    moves = drift.min("refinement") >= ROUNDING
    order = stats.loglog_slope(1 / ds.refinement, drift, "refinement")
    return [
        jd.gate("share of runs whose drift is above rounding", moves.mean(), at_least=0.75),
        jd.at_most("residual along the flow / size", residual(ds), 1e-8),
        jd.within("order of the drift in the step size", order.where(moves, 1.0), 0.85, 1.15),
    ]


def judge_identity(ds: xr.Dataset) -> list[jd.Check]:
    """Both sides of the discrete identity agree to rounding, for logits of order one."""
    difference = abs(ds.measured_drift - ds.predicted_drift).max(["time", "token"])
    return [jd.at_most("difference of the two sides", difference, 1e-11)]


def judge_total(ds: xr.Dataset) -> list[jd.Check]:
    """The logits of each query move, but their sum does not: its change over the sum of the absolute changes, at the end."""
    moved = ds.moved.isel(time=-1)
    leak = abs(ds.measured_total - ds.predicted_total).isel(time=-1) / moved
    return [
        jd.gate("sum over tokens of the absolute changes of the logits", moved, at_least=1e-5),
        jd.at_most("change of the sum of the logits / sum of the absolute changes", leak, 1e-10),
    ]


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


def plot_total(ds: xr.Dataset, fig: Figure) -> None:
    """Change of the sum of a query's logits against the sum of their absolute changes."""
    ax = fig.subplots()
    change = abs(ds.measured_total - ds.predicted_total).isel(time=-1)
    plotting.scatter(ax, ds.moved.isel(time=-1), np.maximum(change, 1e-17), label="queries of all runs", log=True)
    ax.set_xlabel("sum over tokens of |change of the logit|")
    ax.set_ylabel("|change of the sum of the logits|")


def moved_by(factor: Callable[[xr.Dataset], xr.DataArray | float]) -> Callable[[xr.Dataset], xr.Dataset]:
    """Another law: the predicted changes of the logits' side times a factor."""

    def moved(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
        return lambda ds: ds[name].isel(time=0) + factor(ds) * (ds[name] - ds[name].isel(time=0))

    return jd.swap(predicted_flow=moved("predicted_flow"), predicted_descent=moved("predicted_descent"))


NOTHING_MOVES = jd.initial("time", "predicted_flow", "predicted_descent")
EQUAL_RATES = moved_by(lambda ds: 1 / ds.ratio)
NO_TEMPERATURE = moved_by(lambda ds: ds.tau)  # the law of exp attention for temperature 1
TWICE = moved_by(lambda ds: 2.0)  # logits and squared weights grow alike: without 1/2 (exp), or with it (linear)
EACH_QUERY = moved_by(lambda ds: ds.queries)  # the law of one query for each: the sum changes once for every query
# the law of exp attention, summed over tokens: the normalisation switched off
EXP_TOTAL = jd.swap(predicted_total=lambda ds: ds.predicted_total.isel(time=0) + ds.squares)


def shrunk_drift(ds: xr.Dataset) -> xr.DataArray:
    """Decay that shrinks the quantity of Theorem 1 at the logits' own rate; what it takes is in proportion to the start."""
    start = ds.side.isel(time=0) * ds.weight_decay * ds.ratio
    return ds.increments - start * ds.lost.time * HORIZON / np.maximum(ds.ratio / ds.tau, 1.0)


BREACHES: dict[str, Any] = {
    "embeddings not orthonormal": {"noise": 0.3},
    "weight decay": {"weight_decay": 0.1},
    "Adam": jd.Control({"optimizer": "adam"}, breaks="gradient descent"),
    "two queries, law of one": jd.Control({"queries": 2}, breaks="its attention logit"),
}
RIVALS: dict[str, Any] = {"nothing moves": jd.off(NOTHING_MOVES), "law of equal rates": EQUAL_RATES, "a factor 2": TWICE}
PHI, DEPTH, LOSS = list(model.ACTIVATIONS), [0, 2], list(model.LOSSES)
GRID = jd.grid(Elementwise, phi=PHI, ratio=[0.1, 10.0], depth=DEPTH, loss=LOSS, lr=0.00125)
# At paper scale, the paper having no such table: two to four times the tokens, four times the nodes, twice the samples of the quick
# grid. (32 tokens, 64 samples, three ratios and 8 seeds would take hundreds of hours; ``--set`` gives any part of them.)
SIZES = {"tokens": [8, 16], "samples": 16, "hidden": 8, "nodes": 8.0, "outputs": 3, "dim": 20}
PAPER = GRID.replace(**SIZES)
LAWS = jd.Study(
    trial=invariant_trial,
    evidence="network",
    bounds="derived: the solver's tolerance, and the first order of Euler's error over step sizes that halve twice",
    quick=GRID,
    paper=PAPER,
    seeds=2,
    tested="One block with {nodes} hidden nodes and {tokens} tokens, trained on {samples} random samples (embeddings "
    "orthonormal); activation {phi}; upper layers above the first: {depth}, with {upper} below each; loss {loss}; "
    "ratio of the learning rates {ratio}, temperature {tau}. Gradient flow for a time of {horizon}, and plain gradient "
    "descent at the step size {lr}, at a half and at a quarter of it; seeds: {seeds}.",
    source="arXiv:2310.00535, Theorem 1",
    judge=judge_law,
    min_ok=SLIDING,
    rivals=RIVALS,
    plot=plot_law,
    caption=r"Left: change of the logits' side of the law over a run of gradient flow, against the change predicted from the "
    r"weights; one point per token and run. Right: drift of the law along gradient descent (root mean square over times and "
    r"tokens) against the step size; points are medians over the runs, bars their full range, the dashed line has slope 1.",
)
STEPS = jd.grid(
    OneBlock,
    attention=["exp", "linear"],
    phi=PHI,
    ratio=[0.1, 10.0],
    tau=[0.5, 2.0],
    fraction=[0.4, 1.0],
    depth=DEPTH,
    loss=LOSS,
    lr=0.05,
    horizon=HORIZON,
)
IDENTITY = jd.Study(
    trial=identity_trial,
    evidence="network",
    bounds="derived: float64 rounding of sums over steps, for logits of order one",
    quick=STEPS,
    paper=STEPS.replace(**SIZES),
    seeds=1,
    tested="One block with {nodes} hidden nodes and {tokens} tokens, trained on {samples} random samples (embeddings "
    "orthonormal); activation {phi}; upper layers above the first: {depth}, with {upper} below each; loss {loss}; "
    "attention {attention}; ratio of the learning rates {ratio}, temperature {tau}. Gradient descent at the rate {lr} "
    "for a time of {horizon} (number of steps times rate), each sample in a batch with probability {fraction}; seeds: "
    "{seeds}.",
    source="derived from arXiv:2310.00535, Theorem 1, for finite step sizes",
    judge=judge_identity,
    plot=plot_identity,
    caption=r"Drift of the law at the end of a run of (stochastic) gradient descent, against the sum over its steps that predicts "
    r"it; one point per token and run.",
)
SOFTMAX = STEPS.replace(attention="softmax", phi=["id", "tanh", "gelu"], optimizer=["gd", "momentum"], queries=3, noise=[0.0, 0.3])
ONE_QUERY = {"two queries, law of one": jd.Control({"queries": 2}, breaks="one query")}
MOMENTUM = {
    "momentum": jd.Control({"optimizer": "momentum"}, breaks="plain gradient descent"),
    "Adam": jd.Control({"optimizer": "adam"}, breaks="plain gradient descent"),
}

CLAIMS = (
    LAWS.claim(
        id="joma.exp_invariant",
        talks=(
            "training:joma-theorem-1-exp",
            "training:joma-zero-start",
            "training:joma-theorem-1-any",
            "training:joma-folding",
        ),
        title="Under exp attention the MLP's weights determine the logits",
        statement="With one query, orthonormal embeddings and no weight decay, joint training of exp attention and the MLP "
        r"above it conserves $z - \frac{r}{2\tau}\sum_k v_k^2$ for each token ($z$: its attention logit, $v_k$: its weight at "
        r"hidden node $k$, $\tau$: temperature, $r$: learning rate of the logits over that of the MLP): to $10^{-8}$ of the "
        "logits along gradient flow, and up to a drift of first order in the step size along gradient descent.",
        source="arXiv:2310.00535, Theorem 1, exp attention",
        quick=GRID.replace(attention="exp", tau=[0.5, 2.0]),
        paper=PAPER.replace(attention="exp", tau=[0.5, 2.0]),
        controls=BREACHES,
        rivals={**RIVALS, "law of temperature 1": NO_TEMPERATURE},
    ),
    LAWS.claim(
        id="joma.linear_invariant",
        talks=(
            "training:joma-theorem-1-linear",
            "training:joma-theorem-1-any",
        ),
        title="Under linear attention the MLP's weights determine the squared logits",
        statement="With one query, orthonormal embeddings and no weight decay, joint training of linear attention and the MLP "
        r"above it conserves $z^2 - r\sum_k v_k^2$ for each token ($z$: its attention logit, $v_k$: its weight at hidden node "
        "$k$, $r$: learning rate of the logits over that of the MLP): to $10^{-8}$ of the squared logits along gradient flow, "
        "and up to a drift of first order in the step size along gradient descent.",
        source="arXiv:2310.00535, Theorem 1, linear attention",
        quick=GRID.replace(attention="linear"),
        paper=PAPER.replace(attention="linear"),
        controls=BREACHES,
    ),
    LAWS.claim(
        id="joma.sigmoid_invariant",
        talks=("training:joma-theorem-1-any",),
        title="Under sigmoid attention, too, the MLP's weights determine the logits",
        statement="With one query, orthonormal embeddings and no weight decay, joint training of sigmoid attention and the MLP "
        r"above it conserves $z + \tau e^{z/\tau} - \frac{r}{2\tau}\sum_k v_k^2$ for each token ($z$: its attention logit, "
        r"$v_k$: its weight at hidden node $k$, $\tau$: temperature, $r$: learning rate of the logits over that of the MLP): to "
        r"$10^{-8}$ of the largest $z + \tau e^{z/\tau}$ along gradient flow, and up to a drift of first order in the step size "
        "along gradient descent.",
        source="derived from the proof of arXiv:2310.00535, Theorem 1, for attention that is a function of each logit",
        quick=GRID.replace(attention="sigmoid", tau=[0.5, 2.0]),
        paper=PAPER.replace(attention="sigmoid", tau=[0.5, 2.0]),
        controls=BREACHES | {"softmax attention": {"attention": "softmax"}},
    ),
    LAWS.claim(
        id="joma.multi_query",
        talks=("training:joma-theorem-1-any", "training:joma-folding"),
        title="With several queries, the MLP's weights determine a sum over queries",
        statement="When several queries $m$, each with attention logits $z_m$ of its own, share the MLP, training with "
        r"orthonormal embeddings and no weight decay conserves the sums over queries $\sum_m z_m - \frac{r}{2\tau}\sum_k v_k^2$ "
        r"(exp attention) and $\sum_m z_m^2 - r\sum_k v_k^2$ (linear attention) of each token: to $10^{-8}$ of the logits' part "
        "of them along gradient flow, and up to a drift of first order in the step size along gradient descent ($v_k$: the "
        r"token's weight at hidden node $k$, $\tau$: temperature, $r$: learning rate of the logits over that of the MLP).",
        tested="One block with {nodes} hidden nodes and {tokens} tokens, trained on {samples} random samples (embeddings "
        "orthonormal); activation {phi}; upper layers above the first: {depth}, with {upper} below each; loss {loss}; "
        "attention {attention}, {queries} queries; ratio of the learning rates {ratio}, temperature {tau}. Gradient "
        "flow for a time of {horizon}, and plain gradient descent at the step size {lr}, at a half and at a quarter of "
        "it; seeds: {seeds}.",
        source="derived from arXiv:2310.00535, Theorem 1 (sum over queries)",
        quick=GRID.replace(
            attention=["exp", "linear"], phi=["relu", "tanh"], tau=[0.5, 2.0], loss="squared", queries=[2, 3], law="sum"
        ),
        paper=PAPER.replace(attention=["exp", "linear"], phi=["relu", "tanh"], tau=[0.5, 2.0], queries=[2, 3], law="sum"),
        seeds=1,
        controls={"logits of the first query alone": {"law": "query"}, "embeddings not orthonormal": {"noise": 0.3}},
        rivals={
            "nothing moves": jd.off(NOTHING_MOVES),
            "law of one query, for each": EACH_QUERY,
            "law of equal rates": EQUAL_RATES,
        },
    ),
    IDENTITY.claim(
        id="joma.discrete_identity",
        talks=("training:joma-theorem-1-any",),
        title="What steps of finite size change in JoMA's conserved quantities",
        statement="With one query, orthonormal embeddings and no weight decay, plain gradient descent, on the full batch or on "
        r"mini-batches, changes $z - \frac{r}{2\tau}\sum_k v_k^2$ (exp attention) by $-\frac{r}{2\tau}\sum_s\sum_k(\Delta "
        r"v_{k,s})^2$ and $z^2 - r\sum_k v_k^2$ (linear attention) by $\sum_s(\Delta z_s)^2 - r\sum_s\sum_k(\Delta v_{k,s})^2$, "
        r"to rounding; $\Delta$ is the change in step $s$, $z$ a token's logit, $v_k$ its weight at hidden node $k$, $\tau$ the "
        "temperature, $r$ the learning rate of the logits over that of the lower layer.",
        controls={**MOMENTUM, **ONE_QUERY, "embeddings not orthonormal": {"noise": 0.3}},
        rivals={"the quantities are conserved": jd.off(predicted_drift=0.0)},
    ),
    IDENTITY.claim(
        id="joma.weight_decay",
        talks=("training:joma-theorem-1-any",),
        title="What weight decay takes from JoMA's conserved quantities",
        statement=r"With orthonormal embeddings, plain gradient descent with weight decay $\lambda$ on the lower layer (rate "
        r"$\eta$) and on the logits of one query (rate $r\eta$) changes $z - \frac{r}{2\tau}\sum_k v_k^2$ (exp attention) by "
        r"$-\frac{r}{2\tau}\sum_s\sum_k(\Delta v_{k,s})^2 - \eta r\lambda\sum_s(z_s - \frac1\tau\sum_k v_{k,s}^2)$ and $z^2 - "
        r"r\sum_k v_k^2$ (linear attention) by $\sum_s(\Delta z_s)^2 - r\sum_s\sum_k(\Delta v_{k,s})^2 - 2\eta "
        r"r\lambda\sum_s(z_s^2 - \sum_k v_{k,s}^2)$, to rounding; $\Delta$ is the change in step $s$, $z$ a token's logit, $v_k$ "
        r"its weight at hidden node $k$, $\tau$ the temperature.",
        tested="One block with {nodes} hidden nodes and {tokens} tokens, trained on {samples} random samples (embeddings "
        "orthonormal); activation {phi}; upper layers above the first: {depth}, with {upper} below each; loss {loss}; "
        "attention {attention}, weight decay {weight_decay}; ratio of the learning rates {ratio}, temperature {tau}. "
        "Gradient descent at the rate {lr} for a time of {horizon} (number of steps times rate), each sample in a "
        "batch with probability {fraction}; seeds: {seeds}.",
        source="derived from arXiv:2310.00535, Theorem 1, with weight decay",
        quick=STEPS.replace(phi=["relu", "tanh"], loss="squared", weight_decay=[0.03, 0.3]),
        paper=STEPS.replace(phi=["relu", "tanh"], weight_decay=[0.03, 0.3], **SIZES),
        controls={**MOMENTUM, **ONE_QUERY, "embeddings not orthonormal": {"noise": 0.3}},
        rivals={
            "Theorem 1, as if without decay": jd.off(predicted_drift="increments"),
            "the continuous law, taken for descent": jd.swap(predicted_drift="lost"),
            "the quantity shrinks as the logits do": jd.swap(predicted_drift=shrunk_drift),
        },
    ),
    IDENTITY.claim(
        id="joma.softmax_sum",
        bounds="derived: float64 rounding of logits of order one, over changes of at least 1e-5",
        title="Softmax attention conserves the sum of each query's logits",
        statement="With softmax attention and no weight decay, gradient descent with or without momentum conserves the sum over "
        r"tokens of each query's logits, $1^\top z_m$: its change over a run is below $10^{-10}$ of the sum of the logits' "
        "absolute changes.",
        tested="One block with {nodes} hidden nodes and {tokens} tokens, trained on {samples} random samples (embeddings "
        "orthonormal, or with noise of size .3); activation {phi}; upper layers above the first: {depth}, with {upper} "
        "below each; loss {loss}; {queries} queries; ratio of the learning rates {ratio}, temperature {tau}. Gradient "
        "descent with and without momentum at the rate {lr} for a time of {horizon} (number of steps times rate), each "
        "sample in a batch with probability {fraction}; seeds: {seeds}.",
        source="derived from arXiv:2310.00535, section 2 (softmax attention is invariant to a shift of its logits)",
        judge=judge_total,
        quick=SOFTMAX.replace(ratio=10.0, tau=0.5),
        paper=SOFTMAX.replace(ratio=10.0, tau=0.5, **SIZES),
        controls={
            "exp attention": {"attention": "exp"},
            "Adam": jd.Control({"optimizer": "adam"}, breaks="gradient descent"),
            "weight decay": jd.Control({"weight_decay": 0.1}, breaks="conserves"),
        },
        rivals={"no normalisation: exp attention's law": jd.off(EXP_TOTAL)},
        plot=plot_total,
        caption=r"Change over a run of the sum over tokens of a query's logits under softmax attention, against the sum of the "
        r"absolute changes of the logits; one point per query and run.",
    ),
)
