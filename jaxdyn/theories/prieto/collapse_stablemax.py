"""Where softmax collapses, and what generalises without weight decay: orthogonal gradients, and StableMax.

The collapse of the softmax in rounded numbers, and gradients along the weights.

What generalises without weight decay: orthogonal gradients, and StableMax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.prieto import published
from jaxdyn.theories.prieto.arithmetic import Arithmetic, trial
from jaxdyn.theories.prieto.dynamics import SIGNIFICANT

HALF, SINGLE = (SIGNIFICANT[kind] for kind in ("float16", "float32"))


OUTSIDE = "share of zeros outside the bounds, largest"
NEAR_LEAST = "|share of zeros - least share|, float16, mean over records"
NEAR_LARGEST = "largest share - share of zeros, mean over records"
AT_END = "share of zeros at the end"


def distances(zeros: stats.Labelled, least: stats.Labelled, largest: stats.Labelled) -> dict[str, xr.DataArray]:
    """How far shares of zeros lie outside two bounds, from the lower one in float16, and below the upper one."""
    return {
        OUTSIDE: np.maximum(least - zeros, zeros - largest).clip(0).max("record"),
        NEAR_LEAST: abs(zeros - least).sel(bits=HALF, drop=True).mean("record"),
        NEAR_LARGEST: (largest - zeros).mean("record"),
    }


def judge_collapse(ds: xr.Dataset) -> list[jd.Check]:
    """Zeros between their bounds along training, close to the lower one in float16, and all of the samples at the end."""
    jd.need(ds, seed=5)
    far, last = distances(ds.measured_zeros, ds.predicted_zeros, ds.most), ds.isel(record=-1)
    return [
        jd.gate("accuracy on training pairs", last.train_curve, at_least=1.0),
        jd.gate("loss in float64", last.loss_curve, at_least=1e-14),
        jd.at_most(OUTSIDE, far[OUTSIDE], 0.02),
        jd.mean_within(NEAR_LEAST, far[NEAR_LEAST], over="seed", high=0.002),
        jd.mean_within(NEAR_LARGEST, far[NEAR_LARGEST], over="seed", high=0.04),
        jd.mean_within(AT_END, last.measured_zeros, over="seed", low=0.9),
    ]


def share_is(share: Callable[[xr.Dataset], xr.DataArray]) -> dict[str, Callable[[xr.Dataset], float]]:
    """What a rival says of the checks for which both bounds are one share: its worst distance and its mean ones."""

    def far(ds: xr.Dataset) -> dict[str, xr.DataArray]:
        both = share(ds) + 0 * ds.measured_zeros
        return distances(ds.measured_zeros, both, both)

    return {
        OUTSIDE: lambda ds: float(far(ds)[OUTSIDE].max()),
        NEAR_LEAST: lambda ds: float(far(ds)[NEAR_LEAST].mean()),
        NEAR_LARGEST: lambda ds: float(far(ds)[NEAR_LARGEST].mean()),
    }


TEST = "accuracy on unseen pairs, mean over precisions"
FEWER = "share of zeros in float32, training in float64 minus {}"
WORSE = "log10 of the loss, {} over float64, largest in the second half"
COARSE = ("float32", "float16")


def judge_precision(ds: xr.Dataset) -> list[jd.Reading]:
    """What training in float32 and float16 changes by the end, compared with training in float64 from the same start."""
    jd.need(ds, seed=5, precision=("float64", *COARSE))
    last = ds.isel(record=-1)
    late = np.log10(ds.loss_curve.isel(record=slice(ds.sizes["record"] // 2, None)))
    exact = last.sel(precision="float64", drop=True)
    readings = [jd.mean_reading(TEST, ds.measured_test, over=["precision", "seed"])]
    for kind in COARSE:
        own = last.sel(precision=kind, drop=True)
        lost = (exact.measured_zeros - own.measured_zeros).sel(bits=SINGLE, drop=True)
        worse = (late.sel(precision=kind, drop=True) - late.sel(precision="float64", drop=True)).max("record")
        readings += [
            jd.mean_reading(FEWER.format(kind), lost, over="seed"),
            jd.mean_reading(WORSE.format(kind), worse, over="seed"),
        ]
    return readings


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: training in the coarsest precision is taken for that in the finest one, and the other way round."""
    other = ds.isel(precision=slice(None, None, -1)).assign_coords(precision=ds.precision)
    return ds.assign(measured_zeros=other.measured_zeros, loss_curve=other.loss_curve)


COSINE, RISE = "cosine at the end / predicted", "rise of the cosine in the second half / predicted"


def judge_direction(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Cosine of minus the gradient with the weights at the end and its rise; how far the logits keep their direction and grow."""
    jd.need(ds, seed=5)
    half = ds.sizes["record"] // 2
    rise = (ds.cosine_curve.isel(record=-1) - ds.cosine_curve.isel(record=half)) / ds.predicted_cosine
    return [
        jd.gate("accuracy on training pairs at half of the steps", ds.train_curve.isel(record=half), at_least=1.0),
        jd.mean_reading(COSINE, ds.measured_cosine / ds.predicted_cosine, over="seed"),
        jd.mean_reading(RISE, rise, over="seed"),
        jd.mean_reading("cosine of the logits at half of the steps and at the end", ds.kept, over="seed"),
        jd.mean_reading("norm of the logits at the end / at half of the steps", ds.grown, over="seed"),
    ]


def plot_zeros(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of zeros and their bounds along training; losses in float64."""
    left, right = fig.subplots(1, 2)
    kinds = ds.precision.values if "precision" in ds.dims else [None]
    first = ds.sel(precision=kinds[0]) if kinds[0] is not None else ds
    steps = first["at"].isel({d: 0 for d in first["at"].dims if d != "record"})
    for bits, name, color in ((HALF, "float16", "third"), (SINGLE, "float32", "measured")):
        at = first.sel(bits=bits)
        plotting.band(left, steps, at.measured_zeros.transpose(..., "record"), name, color)
        for bound in (at.predicted_zeros, at.most):
            left.plot(steps, bound.mean("seed").squeeze(), ":", color=plotting.COLORS["theory"])
    left.set(xlabel="steps", ylabel="share of losses that are zero", ylim=(-0.02, 1.02))
    for kind, color in zip(kinds, ("theory", "measured", "third"), strict=False):
        at = ds.sel(precision=kind) if kind is not None else ds
        loss = at.loss_curve.isel(record=slice(1, None)).transpose(..., "record")
        plotting.band(right, steps[1:], loss, f"trained in {kind}" if kind is not None else "trained in float64", color)
    right.set(xlabel="steps", ylabel="loss in float64", yscale="log")


def plot_cosine(ds: xr.Dataset, fig: Figure) -> None:
    """Cosine of minus the gradient with the weights along training."""
    ax = fig.subplots()
    steps = ds["at"].isel({d: 0 for d in ds["at"].dims if d != "record"})
    plotting.band(ax, steps, ds.cosine_curve.transpose(..., "record"), "measured", "measured")
    ax.axhline(1.0, color=plotting.COLORS["theory"], linewidth=0.8, label="limit")
    ax.set(xlabel="steps", ylabel="cosine of minus the gradient with the weights", ylim=(-0.1, 1.05))


SETUP = (
    "A network of three matrices with ReLU and {nodes} nodes, without biases and weight decay, is trained by Adam at rate "
    "{lr} for {steps} steps on a share {share} of the sums modulo {modulus}, with the cross-entropy in {precision}; {seeds} "
    "seeds."
)
CAPTION = (
    "Left: share of training samples whose cross-entropy is exactly zero in float16 and float32, of networks trained in float64; "
    "dotted: least and largest share predicted, means over seeds. Right: mean cross-entropy of the training samples, computed in "
    "float64, by the precision of training. Lines and bands: median and central 90% of the seeds."
)
PAPER = jd.grid(
    Arithmetic,
    modulus=published.MODULUS,
    nodes=published.NODES,
    share=published.SHARE,
    lr=published.COLLAPSE_RATE,
    steps=published.STEPS["collapse"],
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Arithmetic),
    paper=PAPER,
    seeds=5,
    paper_seeds=5,
    evidence="network",
    tested=SETUP,
    source="arXiv:2501.04697, section 3",
    plot=plot_zeros,
    caption=CAPTION,
)


COLLAPSE_CLAIMS = (
    STUDY.claim(
        id="prieto.collapse",
        title="When a loss rounds to zero is set by the number of significant bits",
        bounds=jd.tuned(on="0:6", confirmed_on="70000001:70000006"),
        statement=r"In networks trained by Adam without weight decay on the softmax's cross-entropy in float64, which fit all of "
        r"their samples and whose logits $z$ keep growing, the share of samples whose cross-entropy is exactly zero in float16 or "
        r"float32, of $t = 11$ and 24 significant bits, lies, within 2% at each record of each run, between the shares of samples "
        r"with $\sum_{c\ne y} e^{z_c - z_y} < 2^{-t}$ and with $e^{z_c - z_y} \le 2^{-t}$ for each wrong class $c$. On average "
        r"over records it is within 4% of the latter, and in float16 within 0.2% of the former. At the end of 2,000 steps at rate "
        r".01 (at the paper's size 20,000 at .0005) it exceeds 90% in both, although the mean loss in float64 is not zero.",
        judge=judge_collapse,
        controls={
            "weight decay": {"decay": 4.0},
            "without the bit that is not stored": jd.Control(
                jd.swap(predicted_zeros="coarse_least", most="coarse_most"), breaks="significant bits"
            ),
        },
        rivals={
            "numbers are not rounded": jd.off({**share_is(lambda ds: 0 * ds.measured_zeros), AT_END: 0.0}),
            "zero only where exponentials underflow": share_is(lambda ds: ds.underflow),
            "zero once the answer is right": share_is(lambda ds: ds.train_curve),
        },
    ),
    STUDY.claim(
        id="prieto.precision",
        title="What training in low precision does once losses round to zero",
        quick=jd.grid(Arithmetic, precision=["float64", "float32", "float16"]),
        seeds=16,
        paper=PAPER.replace(precision=["float64", "float32", "float16"]),
        statement="What does a cross-entropy in float32 or float16 do to training, compared with one in float64? How many "
        "fewer losses are zero in float32 at the end, and how far does the loss rise above that of training in float64 once "
        "losses round to zero? Unseen pairs are not learned in any of the three, so that nothing is said on generalisation.",
        judge=judge_precision,
        expected="measured",
        controls={
            "float64 and float16 exchanged": exchanged,
            "each precision taken for the next one": jd.rolled(measured_zeros="precision", loss_curve="precision"),
            "accuracy on the training pairs": jd.swap(measured_test=lambda ds: ds.train_curve.isel(record=-1, drop=True)),
        },
        rivals={"the precision plays no part": jd.off({name.format(kind): 0.0 for name in (FEWER, WORSE) for kind in COARSE})},
        recorded={
            TEST: (-0.00112, 0.000898, 0.00292),
            FEWER.format("float32"): (0.561, 0.5983, 0.635),
            WORSE.format("float32"): (4.84, 5.617, 6.39),
            FEWER.format("float16"): (0.409, 0.5242, 0.639),
            WORSE.format("float16"): (4.17, 5.56, 6.95),
        },
    ),
    STUDY.claim(
        id="prieto.naive_loss_min",
        title="How far the gradient points along the weights after fitting",
        statement="How far does minus the gradient point along the weights, once all training pairs are fitted? Its cosine "
        "with the weights at the end, over the limit of one in which nothing but the scale of the logits grows, and its rise "
        "in the second half of training; the cosine of the logits at half of the steps with those at the end, and how much "
        "larger the latter are.",
        source="arXiv:2501.04697, section 4",
        judge=judge_direction,
        expected="measured",
        controls={"cross-entropy in float32": {"precision": "float32"}},
        rivals={
            "any direction": jd.off(predicted_cosine="any_direction"),
            "the limit is reached": {COSINE: 1.0, RISE: 0.0},
        },
        recorded={
            COSINE: (0.764, 0.7774, 0.791),
            RISE: (0.00421, 0.01435, 0.0245),
            "cosine of the logits at half of the steps and at the end": (0.996, 0.9974, 0.998),
            "norm of the logits at the end / at half of the steps": (1.26, 1.287, 1.31),
        },
        plot=plot_cosine,
        caption="Cosine of minus the gradient of the cross-entropy (float64) with all weights against steps; line and band: "
        "median and central 90% of the seeds.",
    ),
)


OTHERS = ("none", "random")


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
    names: dict[Any, str] = {"weights": "orthogonal to the weights", "none": "plain", "random": "orthogonal to random weights"}
    colors: dict[Any, str] = {"weights": "measured", "none": "control", "random": "third"}
    for kind in ds.projection.values if "projection" in ds.dims else [None]:
        at = ds.test_curve if kind is None else ds.test_curve.sel(projection=kind)
        plotting.band(ax, steps, at.transpose(..., "record"), names.get(kind, "StableMax"), colors.get(kind, "measured"))
    ax.axhline(float(ds.chance.max()), color=plotting.COLORS["theory"], linestyle=":", label="chance")
    ax.set(xlabel="steps", ylabel="accuracy on unseen pairs", ylim=(-0.02, 1.02))


SIZE = {"modulus": published.MODULUS, "nodes": published.NODES, "share": published.SHARE, "lr": published.RATE}
PROJECTIONS = ["weights", *OTHERS]
REMEDIES = jd.Study(
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
    *COLLAPSE_CLAIMS,
    REMEDIES.claim(
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
    REMEDIES.claim(
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
