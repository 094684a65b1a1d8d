"""What generalises without weight decay: orthogonal gradients, and StableMax."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.prieto import published
from jaxdyn.theories.prieto.arithmetic import Arithmetic, trial
from jaxdyn.theories.prieto.dynamics import SIGNIFICANT

OTHERS = ("none", "random")
SINGLE = SIGNIFICANT["float32"]


ORTHOGONAL, REST = "accuracy / predicted, orthogonal", "accuracy, other gradients"


def judge_orthogonal(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy on unseen pairs with gradients orthogonal to the weights, and with others."""
    jd.need(ds, seed=5, projection=("weights", *OTHERS))
    ratio = ds.measured_test / ds.predicted_test
    rest = ds.measured_test.sel(projection=list(OTHERS))
    return [
        jd.gate("accuracy on training pairs", ds.train_curve.isel(record=-1), at_least=0.99),
        jd.mean_within(ORTHOGONAL, ratio.sel(projection="weights"), over="seed", low=0.85, high=1.1),
        jd.mean_within(REST, rest, over="seed", high=0.02),
    ]


def plain(ds: xr.Dataset) -> float:
    """The accuracy with plain gradients, which is that of others if the projection plays no part."""
    return float(ds.measured_test.sel(projection="none").mean())


EARLY = "share of runs with a loss that is zero in float32, short training"
LATE = "share of runs with 99% of the losses zero in float32, long training"


def judge_stable(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """StableMax's losses that round to zero in float32, after few steps and after many."""
    jd.need(ds, seed=5, steps=2)
    zeros = ds.stable_zeros.isel(record=-1, drop=True).sel(bits=SINGLE, drop=True)
    first, last = (zeros.isel(steps=place, drop=True) for place in (0, -1))
    return [
        jd.gate("accuracy on training pairs", ds.train_curve.isel(record=-1), at_least=0.99),
        jd.share_reading(EARLY, (first > 0).where(first.notnull()), over="seed"),
        jd.share_reading(LATE, (last >= 0.99).where(last.notnull()), over="seed"),
    ]


def softmax_zeros(ds: xr.Dataset) -> float:
    """The share of runs with a zero in the softmax's cross-entropy of the same logits after few steps."""
    return float((ds.measured_zeros.isel(record=-1, steps=0).sel(bits=SINGLE) > 0).mean())


def plot_stable(ds: xr.Dataset, fig: Figure) -> None:
    """Share of losses that are zero in float32 along training: StableMax, and the softmax of the same logits."""
    ax, last = fig.subplots(), ds.isel(steps=-1) if "steps" in ds.dims else ds
    steps = last["at"].isel({d: 0 for d in last["at"].dims if d != "record"})
    for name, label, color in (("stable_zeros", "StableMax", "measured"), ("measured_zeros", "softmax of these logits", "control")):
        plotting.band(ax, steps, last[name].sel(bits=SINGLE).transpose(..., "record"), label, color)
    ax.set(xlabel="steps", ylabel="share of losses that are zero in float32", ylim=(-0.02, 1.02))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Accuracy on unseen pairs along training."""
    ax = fig.subplots()
    steps = ds["at"].isel({d: 0 for d in ds["at"].dims if d != "record"})
    names = {"weights": "orthogonal to the weights", "none": "plain", "random": "orthogonal to random weights"}
    colors = {"weights": "measured", "none": "control", "random": "third"}
    for kind in ds.projection.values if "projection" in ds.dims else [None]:
        at = ds.test_curve if kind is None else ds.test_curve.sel(projection=kind)
        plotting.band(ax, steps, at.transpose(..., "record"), names.get(kind, "StableMax"), colors.get(kind, "measured"))
    ax.axhline(float(ds.chance.max()), color=plotting.COLORS["theory"], linestyle=":", label="chance")
    ax.set(xlabel="steps", ylabel="accuracy on unseen pairs", ylim=(-0.02, 1.02))


SIZE = {"modulus": published.MODULUS, "nodes": published.NODES, "share": published.SHARE, "lr": published.RATE}
PROJECTIONS = ["weights", *OTHERS]
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Arithmetic, precision="float32", projection=PROJECTIONS, modulus=23, nodes=96, share=0.7, steps=200),
    paper=jd.grid(Arithmetic, precision="float32", projection=PROJECTIONS, steps=published.STEPS["orthogonal"], **SIZE),
    seeds=10,
    paper_seeds=5,
    evidence="network",
    tested="A network of three matrices with ReLU and {nodes} nodes, without biases and weight decay, is trained by Adam at "
    "rate {lr} for {steps} steps on a share {share} of the sums modulo {modulus}, with the cross-entropy in {precision}; "
    "{seeds} seeds.",
    source="arXiv:2501.04697, sections 3 (StableMax) and 5 (orthogonal gradients)",
    plot=plot,
    caption="Share of right answers on pairs that were not trained on, against steps. Lines and bands: median and central 90% of "
    "the seeds; dotted: chance.",
)

CLAIMS = (
    STUDY.claim(
        id="prieto.orthogonal",
        title="Gradients orthogonal to the weights generalise without weight decay",
        bounds=jd.tuned(on="0:10", confirmed_on="70000001:70000011"),
        statement="Networks trained by Adam at rate .01 without weight decay on 70% of the sums modulo 23 for 200 steps (on 40% "
        "of those modulo 113 for 300 at the paper's size) generalise if every matrix's gradient is made orthogonal to it and "
        "rescaled to its norm: on average at least 85% of the unseen sums are right, where at most 2% are with plain gradients, "
        "or with gradients orthogonal to a random matrix.",
        judge=judge_orthogonal,
        controls={"gradients exchanged": jd.rolled(measured_test="projection")},
        rivals={"the projection plays no part": jd.off({ORTHOGONAL: plain}), "chance": jd.swap(predicted_test="chance")},
    ),
    STUDY.claim(
        id="prieto.stablemax",
        title="Whether StableMax keeps losses from rounding to zero",
        quick=jd.grid(Arithmetic, loss="stablemax", steps=[1000, 6000]),
        seeds=16,
        paper=jd.grid(Arithmetic, loss="stablemax", steps=[1000, published.STEPS["stablemax"]], **SIZE),
        tested="A network of three matrices with ReLU and {nodes} nodes, without biases and weight decay, is trained by Adam "
        "at rate {lr} for {steps} steps on a share {share} of the sums modulo {modulus}, with the cross-entropy of "
        "StableMax; {seeds} seeds.",
        statement="StableMax was made so that losses do not round to zero. In how many small networks is a training loss "
        "exactly zero in float32 after 1000 steps, where the softmax of the same logits would already round, and in how many are "
        "99% of the training losses zero after 6000 (80,000 at the larger size)? Nothing is said on generalisation.",
        judge=judge_stable,
        expected="measured",
        controls={"softmax of the same logits": jd.swap(stable_zeros="measured_zeros")},
        rivals={
            "StableMax is never zero": {LATE: 0.0},
            "zero as early as with the softmax": jd.off({EARLY: softmax_zeros}),
        },
        recorded={EARLY: (0.0, 0.0, 0.356), LATE: (0.644, 1.0, 1.0)},
        plot=plot_stable,
        caption="Share of the training samples whose loss is exactly zero in float32 along the longest training: with "
        "StableMax, and with the softmax of the same logits. Lines and bands: median and central 90% of the seeds.",
    ),
)
