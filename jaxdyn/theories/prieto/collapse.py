"""The collapse of the softmax in rounded numbers, and gradients along the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.prieto import published
from jaxdyn.theories.prieto.arithmetic import Arithmetic, trial
from jaxdyn.theories.prieto.dynamics.collapse import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge_collapse", "judge_direction", "judge_precision"]

HALF, SINGLE = (SIGNIFICANT[kind] for kind in ("float16", "float32"))


def judge_collapse(ds: xr.Dataset) -> list[jd.Check]:
    """Zeros between their bounds along training, close to the lower one in float16, and all of the samples at the end."""
    jd.need(ds, seed=5)
    outside = np.maximum(ds.predicted_zeros - ds.measured_zeros, ds.measured_zeros - ds.most).clip(0).max("record")
    off = abs(ds.measured_zeros - ds.predicted_zeros).sel(bits=HALF, drop=True).mean("record")
    over = (ds.most - ds.measured_zeros).mean("record")
    last = ds.isel(record=-1)
    return [
        jd.gate("accuracy on training pairs", last.train_curve, at_least=1.0),
        jd.gate("loss in float64", last.loss_curve, at_least=1e-14),
        jd.at_most("share of zeros outside the bounds, largest", outside, 0.02),
        jd.mean_within("|share of zeros - least share|, float16, mean over records", off, over="seed", high=0.01),
        jd.mean_within("largest share - share of zeros, mean over records", over, over="seed", high=0.04),
        jd.mean_within("share of zeros at the end", last.measured_zeros, over="seed", low=0.9),
    ]


def judge_precision(ds: xr.Dataset) -> list[jd.Check]:
    """What training in float32 and float16 changes by the end, compared with training in float64 from the same start."""
    jd.need(ds, seed=5, precision=("float64", "float32", "float16"))
    last = ds.isel(record=-1)
    late = np.log10(ds.loss_curve.isel(record=slice(ds.sizes["record"] // 2, None)))
    exact = last.sel(precision="float64", drop=True)
    checks = [jd.mean_within("accuracy on unseen pairs, every precision", ds.measured_test, over="seed", high=0.05)]
    for kind in ("float32", "float16"):
        own = last.sel(precision=kind, drop=True)
        lost = (exact.measured_zeros - own.measured_zeros).sel(bits=SINGLE, drop=True)
        worse = (late.sel(precision=kind, drop=True) - late.sel(precision="float64", drop=True)).max("record")
        checks += [
            jd.mean_within(f"share of zeros in float32, training in float64 minus {kind}", lost, over="seed", low=0.1),
            jd.mean_within(f"log10 of the loss, {kind} over float64, largest in the second half", worse, over="seed", low=0.5),
        ]
    return checks


def judge_direction(ds: xr.Dataset) -> list[jd.Check]:
    """Cosine of minus the gradient with the weights at the end and its rise; how far the logits keep their direction and grow."""
    jd.need(ds, seed=5)
    half = ds.sizes["record"] // 2
    rise = (ds.cosine_curve.isel(record=-1) - ds.cosine_curve.isel(record=half)) / ds.predicted_cosine
    return [
        jd.gate(
            "accuracy on training pairs at half of the steps", ds.train_curve.isel(record=ds.sizes["record"] // 2), at_least=1.0
        ),
        jd.mean_within("cosine at the end / predicted", ds.measured_cosine / ds.predicted_cosine, over="seed", low=0.7, high=1.0),
        jd.mean_within("rise of the cosine in the second half / predicted", rise, over="seed", low=0.0, high=0.1),
        jd.mean_within("cosine of the logits at half of the steps and at the end", ds.kept, over="seed", low=0.99),
        jd.mean_within("norm of the logits at the end / at half of the steps", ds.grown, over="seed", low=1.1, high=2.0),
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
    "networks of three matrices with ReLU, without biases and weight decay, trained by Adam for 2000 steps on 60% of the "
    "sums modulo 17"
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
    source="arXiv:2501.04697, section 3",
    plot=plot_zeros,
    caption=CAPTION,
)

CLAIMS = (
    STUDY.claim(
        id="prieto.collapse",
        bounds=jd.looked(at="0:6", confirmed="9000:9005"),
        statement=f"In {SETUP} (cross-entropy in float64), the share of training samples whose cross-entropy is exactly zero "
        "when it is computed from the same logits with $t$ significant bits lies, to 2% at every record of every run, between the "
        r"shares of samples with $\sum_{c\ne y} e^{z_c - z_y} < 2^{-t}$ and with $e^{z_c - z_y} \le 2^{-t}$ for every wrong class "
        "$c$. On average over records it is within 4% of the latter, and in float16 ($t = 11$) within 1% of the former. At the end "
        "it exceeds 90% in float16 and in float32 ($t = 24$), although the mean loss in float64 is not zero.",
        judge=judge_collapse,
        controls={"weight decay": {"decay": 4.0}},
        rivals={
            "numbers are not rounded": jd.scaled(predicted_zeros=0.0, most=0.0),
            "zero only where exponentials underflow": jd.swap(predicted_zeros="underflow", most="underflow"),
            "zero once the answer is right": jd.swap(predicted_zeros="train_curve", most="train_curve"),
        },
    ),
    STUDY.claim(
        id="prieto.precision",
        quick=jd.grid(Arithmetic, precision=["float64", "float32", "float16"]),
        paper=PAPER,
        statement=f"What a cross-entropy in float32 or float16 does to training, compared with one in float64: {SETUP}. How many "
        f"fewer "
        "losses are zero in float32 at the end, and how far the loss rises above that of training in float64 once losses round to "
        "zero: Adam, with its epsilon of $10^{-25}$, enlarges what is left of the gradient. Unseen pairs are not learned in any of "
        "the three within these steps, so whether rounding prevents generalisation is not decided here.",
        judge=judge_precision,
        expected="measured",
        controls={"accuracy on training pairs": jd.swap(measured_test=1.0)},
        rivals={
            "the precision plays no part": jd.swap(
                measured_zeros=lambda ds: ds.measured_zeros.sel(precision="float64"),
                loss_curve=lambda ds: ds.loss_curve.sel(precision="float64"),
            )
        },
        found={
            "accuracy on unseen pairs, every precision": (0.0, 0.05),
            "share of zeros in float32, training in float64 minus float32": (0.3, 0.8),
            "log10 of the loss, float32 over float64, largest in the second half": (3.0, 8.0),
            "share of zeros in float32, training in float64 minus float16": (0.3, 0.9),
            "log10 of the loss, float16 over float64, largest in the second half": (3.0, 8.0),
        },
    ),
    STUDY.claim(
        id="prieto.naive_loss_min",
        statement=f"How far minus the gradient points along the weights in {SETUP} (cross-entropy in float64), once all training "
        "pairs are fitted: its cosine with the weights at the end, over the limit of one in which nothing but the scale of the "
        "logits grows, and its rise in the second half; the cosine of the logits at half of the steps with those at the end, and "
        "how much larger the latter are.",
        source="arXiv:2501.04697, section 4",
        judge=judge_direction,
        expected="measured",
        controls={"cross-entropy in float32": {"precision": "float32"}},
        rivals={"any direction": jd.swap(predicted_cosine="any_direction")},
        found={
            "cosine at the end / predicted": (0.74, 0.81),
            "rise of the cosine in the second half / predicted": (0.005, 0.03),
            "cosine of the logits at half of the steps and at the end": (0.99, 1.0),
            "norm of the logits at the end / at half of the steps": (1.2, 1.4),
        },
        plot=plot_cosine,
        caption="Cosine of minus the gradient of the cross-entropy (float64) with all weights against steps; line and band: median "
        "and central 90% of the seeds.",
    ),
)
