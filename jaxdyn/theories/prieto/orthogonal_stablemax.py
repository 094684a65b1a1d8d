"""What generalises without weight decay: orthogonal gradients, and StableMax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.prieto import published
from jaxdyn.theories.prieto.arithmetic import Arithmetic, trial
from jaxdyn.theories.prieto.dynamics.collapse import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_orthogonal", "judge_stable"]

OTHERS = ("none", "random")
HALF, SINGLE = (SIGNIFICANT[kind] for kind in ("float16", "float32"))


def judge_orthogonal(ds: xr.Dataset) -> list[jd.Check]:
    """Accuracy on unseen pairs with gradients orthogonal to the weights, and with others."""
    jd.need(ds, seed=5, projection=("weights", *OTHERS))
    ratio = ds.measured_test / ds.predicted_test
    rest = ds.measured_test.sel(projection=list(OTHERS))
    return [
        jd.gate("accuracy on training pairs", ds.train_curve.isel(record=-1), at_least=0.99),
        jd.mean_within("accuracy / predicted, orthogonal", ratio.sel(projection="weights"), over="seed", low=0.7, high=1.1),
        jd.mean_within("accuracy, other gradients", rest, over="seed", high=0.02),
    ]


def judge_stable(ds: xr.Dataset) -> list[jd.Check]:
    """What StableMax leaves of the way to full accuracy, and its losses that round to zero."""
    jd.need(ds, seed=5)
    zeros = ds.stable_zeros.isel(record=-1)
    left = ds.predicted_test - ds.measured_test
    return [
        jd.gate("accuracy on training pairs", ds.train_curve.isel(record=-1), at_least=1.0),
        jd.mean_within("predicted minus measured accuracy on unseen pairs", left, over="seed", low=0.9),
        jd.mean_within("share of zeros in float16 at the end", zeros.sel(bits=HALF, drop=True), over="seed", low=0.1),
        jd.mean_within("share of zeros in float32 at the end", zeros.sel(bits=SINGLE, drop=True), over="seed", high=0.05),
    ]


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
    source="arXiv:2501.04697, sections 3 (StableMax) and 5 (orthogonal gradients)",
    plot=plot,
    caption="Share of right answers on pairs that were not trained on, against steps. Lines and bands: median and central 90% of "
    "the seeds; dotted: chance.",
)
EXACT = {"right answers on training pairs": jd.swap(measured_test=1.0)}

CLAIMS = (
    STUDY.claim(
        id="prieto.orthogonal",
        bounds=jd.looked(at="0:10", confirmed="8000:8010"),
        statement="Networks of three matrices with ReLU and without biases, trained by Adam without weight decay for 200 steps on "
        "70% of the sums modulo 23 (cross-entropy in float32), generalise if every matrix's gradient is made orthogonal to it and "
        "rescaled to its norm: at least 70% of the other sums are right on average, where at most 2% are with plain gradients, or "
        "with gradients orthogonal to a random matrix.",
        judge=judge_orthogonal,
        controls={"gradients exchanged": jd.rolled(measured_test="projection")},
        rivals={"chance": jd.swap(predicted_test="chance")},
    ),
    STUDY.claim(
        id="prieto.stablemax",
        quick=jd.grid(Arithmetic, loss="stablemax", steps=1000),
        seeds=5,
        paper=jd.grid(Arithmetic, loss="stablemax", steps=published.STEPS["stablemax"], **SIZE),
        statement="Does StableMax generalise without weight decay? Networks of three matrices with ReLU and without biases, "
        "trained by Adam for 1000 steps on 60% of the sums modulo 17: how far their accuracy on the other sums is from one (the "
        "paper trains for 80 000 steps), and how many of their losses round to zero in float16 and in float32.",
        judge=judge_stable,
        expected="measured",
        controls=EXACT | {"softmax of the same logits": jd.swap(stable_zeros="measured_zeros")},
        rivals={
            "nothing beyond the training pairs": jd.swap(predicted_test=0.0),
            "StableMax is never zero": jd.swap(stable_zeros=0.0),
        },
        found={
            "predicted minus measured accuracy on unseen pairs": (0.97, 1.0),
            "share of zeros in float16 at the end": (0.3, 0.7),
            "share of zeros in float32 at the end": (0.0, 0.01),
        },
    ),
)
