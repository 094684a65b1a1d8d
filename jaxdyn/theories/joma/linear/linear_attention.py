r"""Linear activation under linear attention: no blow-up, and a fixed point at zero.

The network and its runs are in ``training.py``, the closed forms in ``dynamics/linear.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma.linear.training import HyperbolicLayer, hyperbolic_trial


def hyperbolic_judge(ds: xr.Dataset) -> list[jd.Check]:
    """Logits and weights against cosh and sinh, up to four times the blow-up time of exp attention."""
    return [
        jd.at_most("z against cosh", jd.relative_error(ds, "z", "token"), 1e-8),
        jd.at_most("V against sinh", jd.relative_error(ds, "v", "token node"), 1e-8),
    ]


def hyperbolic_plot(ds: xr.Dataset, fig: Figure) -> None:
    """Size of z and V over time, against the closed form."""
    ax, one = fig.subplots(), plotting.first_run(ds, "seed")
    x = one.share.mean("seed").values
    for name, dims, color in (("z", "token", "measured"), ("v", ("token", "node"), "third")):
        size: Any = np.sqrt((one[f"measured_{name}"] ** 2).sum(dims))
        plotting.band(ax, x, size.transpose("seed", "time"), f"norm of {name}, gradient flow", color)
        size = np.sqrt((one[f"predicted_{name}"] ** 2).sum(dims))
        plotting.band(ax, x, size.transpose("seed", "time"), f"norm of {name}, closed form", "theory", 0.0, linestyle="--")
    ax.axvline(1.0, color=plotting.COLORS["failed"], linewidth=1.0, label="blow-up of exp attention")
    ax.set(xlabel=r"$t/t^*$", yscale="log")


def zero_judge(ds: xr.Dataset) -> list[jd.Check]:
    """From V = 0, V is proportional to z(0); from exactly zero it does not move."""
    moved = np.sqrt((ds.measured_v**2).sum(("time", "token", "node")))
    return [
        jd.at_most("V against z(0) sinh", jd.relative_error(ds.isel(depth=slice(1, None)), "v", "token node"), 1e-8),
        jd.within("order of V's size in the size of z(0)", stats.loglog_slope(ds.depth, moved, "depth"), 1 - 1e-6, 1 + 1e-6),
        jd.at_most("size of V from exactly zero", moved.sel(depth=0.0), 0.0),
    ]


def zero_plot(ds: xr.Dataset, fig: Figure) -> None:
    """Norm of V at the last time over the size of z(0)."""
    ax = fig.subplots()
    size = np.sqrt((ds.measured_v.isel(time=-1) ** 2).sum(("token", "node")))
    plotting.order(ax, ds.depth, size.transpose(..., "depth"), 1.0, label="runs")
    ax.set(xlabel="size of z(0)", ylabel=r"$\|V\|$ at the last time")


ONE = jd.grid(HyperbolicLayer, attention="linear")
PAPER = jd.grid(HyperbolicLayer, attention="linear", nodes=[1, 2, 5], tokens=[10, 20], samples=64)
STUDY = jd.Study(
    trial=hyperbolic_trial,
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-11 a step; products with zero are exact",
    quick=ONE,
    paper=PAPER,
    seeds=8,
    paper_seeds=64,
    tested=r"A layer with {attention} attention $b = x \circ z$ and {nodes} linear nodes under upper gradients that are drawn "
    "once and stay; {tokens} tokens, {samples} samples. Gradient flow to {horizon} times the blow-up time of exp "
    "attention from random logits; seeds: {seeds}.",
    source="arXiv:2310.00535, section 3 (linear attention), solved",
)
EXP = {
    "exp attention": jd.Control(
        {"attention": "exp", "horizon": 0.2}, why="Exp attention blows up within the claim's time, so its run has to end earlier."
    )
}
UNEQUAL = {
    "attention learns half as fast": jd.Control({"ratio": 0.5}, breaks="equal rates"),
    "attention learns 1.5 times as fast": jd.Control({"ratio": 1.5}, breaks="equal rates"),
}
STILL: dict[str, Any] = {
    "nothing moves": jd.off(predicted_z="initial_z", predicted_v="initial_v"),
    "attention does not learn": jd.swap(predicted_z="initial_z", predicted_v="straight"),
}

CLAIMS = (
    STUDY.claim(
        id="joma.linear_attention",
        bounds="derived: the solver's tolerance, a relative 1e-11 a step",
        title="Under linear attention weights grow exponentially, without blow-up",
        statement="Under gradient flow at equal rates of weights and logits linear nodes with linear attention of one query "
        "over orthonormal embeddings and stationary upper gradients grow, without blow-up, as $w_l = w_l(0) "
        r"\cosh\|\Delta_l\|t + z_l(0) \sinh\|\Delta_l\|t$, $z_l = z_l(0)\cosh\|\Delta_l\|t + w_l(0) \sinh\|\Delta_l\|t$ for "
        r"up to four times the blow-up time of exp attention ($z_l$: logit of token $l$, $\Delta_l$: its saliency, $w_l$: the "
        r"component of its weights along $\Delta_l$).",
        tested=r"A layer with {attention} attention $b = x \circ z$ and {nodes} linear nodes under upper gradients that are "
        "drawn once and stay; {tokens} tokens, {samples} samples. Gradient flow to {horizon} times the blow-up time of "
        "exp attention from random logits of size {depth} and weights of size {start_v}; seeds: {seeds}.",
        quick=ONE.replace(start_v=[0.0, 0.5]),
        paper=PAPER.replace(start_v=[0.0, 0.5]),
        judge=hyperbolic_judge,
        controls={**EXP, **UNEQUAL},
        rivals=STILL,
        plot=hyperbolic_plot,
        caption=r"Norms of $z$ and of $V$ against time in units of the blow-up time $t^*$ of exp attention (vertical line): "
        r"gradient flow (solid lines, medians over the runs; bands, central 90%) and closed form (dashed, medians).",
    ),
    STUDY.claim(
        id="joma.zero_start",
        talks=("training:joma-zero-start",),
        title="Linear attention started at zero does not move",
        statement="For linear nodes with linear attention of one query over orthonormal embeddings and stationary upper "
        "gradients, zero logits $z$ and zero weights $V$ are a fixed point of training; from $V = 0$, under gradient flow at "
        "equal rates of weights and logits, the weights are in proportion to the logits of the start, $V_l = z_l(0) "
        r"\sinh(\|\Delta_l\|t)\,\Delta_l/\|\Delta_l\|$ for token $l$ with saliency $\Delta_l$.",
        decides={"in proportion": ("order of V's size in the size of z(0)", "V starts away from zero")},
        tested=r"A layer with {attention} attention $b = x \circ z$ and {nodes} linear nodes under upper gradients that are "
        "drawn once and stay; {tokens} tokens, {samples} samples. Gradient flow to {horizon} times the blow-up time of "
        "exp attention from zero weights and random logits of size {depth}; seeds: {seeds}.",
        source="arXiv:2310.00535, Theorem 1, remark that zero initialisation gives c = 0 (void for linear attention)",
        quick=ONE.replace(depth=[0.0, 1e-6, 1e-3, 1.0]),
        paper=PAPER.replace(depth=[0.0, 1e-6, 1e-3, 1.0]),
        judge=zero_judge,
        controls={**EXP, **UNEQUAL, "V starts away from zero": {"start_v": 0.1}},
        rivals=STILL,
        plot=zero_plot,
        caption=r"Norm of $V$ at the last time against the size of $z(0)$; points are medians over the runs, bars their full "
        r"range, the dashed line has slope 1.",
    ),
)
