"""Attention sinks that networks learn: the head of the Bigram-Backcopy task, with several forms of attention."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.backcopy import Backcopy, trial
from jaxdyn.theories.sink.model import FORMS

__all__ = ["CLAIMS", "judge_emerge", "judge_forms", "judge_own"]

MOVED = ("idle", "copying", "drain", "share")
LEAST = 2.0  # times the weight of uniform attention, from which the head has a sink
ENDS = {
    "softmax": (LEAST, None),
    "zero_sink": (LEAST, None),
    "sink_bias": (LEAST, None),
    "relu": (None, 0.8),
    "sigmoid": (1.5, None),
}


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: both tasks are learned, on average over runs."""
    end = ds.isel(step=-1)
    return [
        jd.gate("cross-entropy at triggers, mean over runs", end.copy_loss.mean("seed"), at_most=0.3),
        jd.gate("cross-entropy elsewhere minus its floor, mean over runs", end.excess.mean("seed"), at_most=0.2),
    ]


def judge_emerge(ds: xr.Dataset) -> list[jd.Check]:
    """Weights on token 0 at the end, where the head is idle and where it copies, and the size of its value."""
    end = ds.isel(step=-1)
    idle, copying = end.measured_share / end.uniform, end.measured_copying / end.uniform
    return [
        *trained(ds),
        jd.mean_within("share of token 0 at idle queries over that of uniform attention", idle, over="seed", low=LEAST),
        jd.mean_within("weight on token 0 at triggers over that of uniform attention", copying, over="seed", high=0.5),
        jd.mean_within("size of the value of token 0 over the mean of others", end.measured_drain, over="seed", high=0.75),
    ]


def judge_own(ds: xr.Dataset) -> list[jd.Check]:
    """Share of token 0 at idle queries at the end, in networks whose attention has a sink of its own: the mean of either form."""
    end = ds.isel(step=-1)
    ratio = end.measured_share / end.uniform
    return [
        *trained(ds),
        jd.mean_within("share of token 0 at idle queries over that of uniform attention", ratio, over="seed", low=LEAST),
    ]


def judge_forms(ds: xr.Dataset) -> list[jd.Check]:
    """Share of token 0 in the weights at idle queries, over that of uniform attention, for every form of attention."""
    jd.need(ds, attention=FORMS)
    end = ds.isel(step=-1)
    ratio = end.measured_share / end.uniform
    return [
        *trained(ds),
        *(
            jd.mean_within(f"share of token 0, {form}", ratio.sel(attention=form), over="seed", low=low, high=high)
            for form, (low, high) in ENDS.items()
        ),
    ]


# Nothing moves.
STILL = jd.initial("step", *(f"measured_{name}" for name in MOVED))


# Whatever the form of attention, token 0 gets what uniform attention gives it.
UNIFORM = jd.swap(measured_idle="uniform", measured_share="uniform")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Weights on token 0, the margin and the drain along training, by form of attention."""
    axes = fig.subplots(1, 3)
    forms = [str(f) for f in ds.attention.values] if "attention" in ds.dims else ["all runs"]
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    for form, color in zip(forms, ("measured", "third", "theory", "control", "fourth"), strict=False):
        part = ds.sel(attention=form) if "attention" in ds.dims else ds
        for ax, name in zip(axes, ("measured_idle", "measured_margin", "measured_drain"), strict=True):
            plotting.band(ax, steps, part[name].transpose(..., "step"), form, color)
    for ax, label in zip(axes, ("weight on token 0, idle", r"margin $\Delta$", "size of its value / others"), strict=True):
        ax.set(xlabel="step", ylabel=label)
    axes[0].axhline(float(ds.uniform.mean()), linestyle="--", color=plotting.COLORS["theory"])


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Backcopy, attention=list(FORMS)),
    paper=jd.grid(Backcopy, attention=list(FORMS), lr=3e-3, every=20.0, vocabulary=33, length=48, width=64, hidden=256, batch=64),
    seeds=12,
    paper_seeds=32,
    evidence="network",
    source="arXiv:2410.13835, section 2 (task and mechanism); arXiv:2410.10781 (forms of attention); sizes and bounds ours",
    rivals={"nothing moves": STILL},
    plot=plot,
    caption="Weight on token 0 at idle queries (dashed: uniform attention), margin of its score and size of its value along "
    "training, by form of attention: median and central 90% of the runs.",
)
FOUND = {  # means of four sets of 12 seeds, from 0, 7102000, 7103000 and 41000000, and room for those of others
    "softmax": (3.5, 5.5),
    "zero_sink": (3.5, 5.7),
    "sink_bias": (3.3, 5.3),
    "relu": (0.05, 0.45),
    "sigmoid": (4.2, 6.4),
}
SETUP = (
    "one-block transformers with one head, trained by Adam for 600 steps on the Bigram-Backcopy task (17 tokens, 3 of them "
    "triggers, sequences of 32 that begin with token 0)"
)

CLAIMS = (
    STUDY.claim(
        id="sink.bb_emerge",
        statement=f"In {SETUP}, does a sink emerge where the head has nothing to do? At queries that are no triggers, softmax "
        "attention puts 3 to 5 times the weight of uniform attention on token 0, at triggers a twentieth of it at most, and the "
        "value of token 0 writes 0.35 to 0.55 of what others write (means of two sets of 16 runs, which differ much).",
        expected="measured",
        seeds=16,
        quick=jd.grid(Backcopy, attention="softmax"),
        judge=judge_emerge,
        controls={"ReLU attention": {"attention": "relu"}},
        found={
            "share of token 0 at idle queries over that of uniform attention": (3.0, 5.5),
            "weight on token 0 at triggers over that of uniform attention": (0.01, 0.07),
            "size of the value of token 0 over the mean of others": (0.3, 0.65),
        },
    ),
    STUDY.claim(
        id="sink.bb_zero",
        statement=f"Does a sink in the formula remove the one on token 0? In {SETUP}, attention with a zero sink, or with a "
        "learned bias in its denominator, still puts 3.7 to 4.8 times the share of uniform attention on token 0 at queries that "
        "are no triggers (means of three sets of 12 runs, which differ much).",
        expected="measured",
        quick=jd.grid(Backcopy, attention=["zero_sink", "sink_bias"]),
        judge=judge_own,
        controls={"ReLU attention": {"attention": "relu"}},
        rivals={"nothing moves": STILL, "token 0 is left at the weight of uniform attention": UNIFORM},
        found={"share of token 0 at idle queries over that of uniform attention": FOUND["sink_bias"]},
    ),
    STUDY.claim(
        id="sink.bb_forms",
        statement=f"In {SETUP}, which share of its weights does the head put on token 0 at queries that are no triggers, by form "
        "of attention, over that of uniform attention? Softmax, with and without a sink in the formula: 3.7 to 4.8 times "
        "as much. ReLU: a twentieth to a fifth. Sigmoid: 4.7 to 6.2 times as much, too, of weights whose sum is free. (Means of "
        "three sets of 12 runs.)",
        expected="measured",
        judge=judge_forms,
        controls={"shares of the forms exchanged": jd.rolled(measured_share="attention")},
        rivals={"nothing moves": STILL, "token 0 is left at the weight of uniform attention": UNIFORM},
        found={f"share of token 0, {form}": interval for form, interval in FOUND.items()},
    ),
)
