"""Sinks in the Bigram-Backcopy task: that they emerge, what they need, and how they grow.

Attention sinks that networks learn: the head of the Bigram-Backcopy task, with several forms of attention.

How the margin of the sink's score grows along training, which law fits it, and how the size of its value falls with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import spearman
from jaxdyn.theories.sink.backcopy import Backcopy, trial
from jaxdyn.theories.sink.model import FORMS

IDLE = "share of token 0 at idle queries over that of uniform attention"
TRIGGERS = "weight on token 0 at triggers over that of uniform attention"
VALUE = "size of the value of token 0 over the mean of others"


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: both tasks are learned, on average over runs."""
    end = ds.isel(step=-1)
    return [
        jd.gate("cross-entropy at triggers, mean over runs", end.copy_loss.mean("seed"), at_most=0.3),
        jd.gate("cross-entropy elsewhere minus its floor, mean over runs", end.excess.mean("seed"), at_most=0.2),
    ]


def idle(ds: xr.Dataset, step: int = -1) -> xr.DataArray:
    """Share of token 0 in the weights at idle queries, over that of uniform attention."""
    return ds.measured_share.isel(step=step, drop=True) / ds.uniform


def judge_emerge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Weights on token 0 at the end, where the head is idle and where it copies, and the size of its value."""
    end = ds.isel(step=-1)
    return [
        *trained(ds),
        jd.mean_reading(IDLE, idle(ds), over="seed"),
        jd.mean_reading(TRIGGERS, end.measured_copying / end.uniform, over="seed"),
        jd.mean_reading(VALUE, end.measured_drain, over="seed"),
    ]


def judge_own(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Share of token 0 at idle queries at the end, mean over the forms of attention that are run, however many."""
    forms = [axis for axis in idle(ds).dims if axis != "seed"]
    return [*trained(ds), jd.mean_reading(IDLE, idle(ds).mean(forms), over="seed")]


def judge_forms(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Share of token 0 in the weights at idle queries, over that of uniform attention, for every form of attention."""
    jd.need(ds, attention=FORMS)
    return [
        *trained(ds),
        *(jd.mean_reading(f"share of token 0, {form}", idle(ds).sel(attention=form), over="seed") for form in FORMS),
    ]


def idle_at_the_start(ds: xr.Dataset) -> float:
    """The share of token 0 with the random weights of the start."""
    return float(idle(ds, 0).mean())


# Nothing moves.
STILL = {
    IDLE: idle_at_the_start,
    TRIGGERS: lambda ds: float((ds.measured_copying.isel(step=0) / ds.uniform).mean()),
    VALUE: lambda ds: float(ds.measured_drain.isel(step=0).mean()),
}
STILL_FORMS = {f"share of token 0, {form}": lambda ds, form=form: idle_at_the_start(ds.sel(attention=form)) for form in FORMS}


# Whatever the form of attention, token 0 gets what uniform attention gives it.
UNIFORM_FORMS = {f"share of token 0, {form}": 1.0 for form in FORMS}


def all_weight(ds: xr.Dataset) -> float:
    """A weight of one, over that of uniform attention."""
    return float((1 / ds.uniform).mean())


ALL: dict[str, Any] = {IDLE: all_weight, TRIGGERS: all_weight, VALUE: 1.0}
ALL_FORMS = {f"share of token 0, {form}": all_weight for form in FORMS}


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
    tested="One-block transformers with one head, trained by Adam for 600 steps on the Bigram-Backcopy task: sequences of "
    "{length} of {vocabulary} tokens that begin with token 0, {triggers} of the tokens are triggers, after which the token "
    "before them is repeated; {seeds} seeds. Queries at all other tokens are idle.",
    plot=plot,
    caption="Weight on token 0 at idle queries (dashed: uniform attention), margin of its score and size of its value along "
    "training, by form of attention: median and central 90% of the runs.",
)


BB_EMERGE_CLAIMS = (
    STUDY.claim(
        id="sink.bb_emerge",
        title="Does a head look at the first token where it has nothing to do?",
        statement="Does an attention sink emerge where a head has nothing to do? The readings are the weight of the first token at "
        "idle queries and at triggers, over that of uniform attention, and the size of what its value writes, over the mean of "
        "other tokens.",
        talks=("practical:sink-why-sum",),
        expected="measured",
        seeds=16,
        quick=jd.grid(Backcopy, attention="softmax"),
        judge=judge_emerge,
        controls={"ReLU attention": {"attention": "relu"}},
        rivals={"nothing moves": jd.off(STILL), "token 0 has all weight, and a value like others": ALL},
        recorded={
            "share of token 0 at idle queries over that of uniform attention": (2.99, 4.725, 6.46),
            "weight on token 0 at triggers over that of uniform attention": (0.00735, 0.02823, 0.0492),
            "size of the value of token 0 over the mean of others": (0.253, 0.3973, 0.542),
        },
    ),
    STUDY.claim(
        id="sink.bb_zero",
        title="Does a sink in the formula of attention remove the learned one?",
        statement="Does a sink in the formula of attention, a 1 or a learned number in its denominator, remove the one on the "
        "first token? The reading is the first token's share of the weights at idle queries over its share under uniform "
        "attention, mean of both forms.",
        talks=("practical:sink-why-sum", "practical:sink-gpt-oss-bias"),
        expected="measured",
        quick=jd.grid(Backcopy, attention=["zero_sink", "sink_bias"]),
        judge=judge_own,
        controls={"ReLU attention": {"attention": "relu"}},
        rivals={
            "nothing moves": jd.off({IDLE: idle_at_the_start}),
            "token 0 is left at the weight of uniform attention": {IDLE: 1.0},
        },
        recorded={
            "share of token 0 at idle queries over that of uniform attention": (2.2, 4.385, 6.57),
        },
    ),
    STUDY.claim(
        id="sink.bb_forms",
        title="Which forms of attention make a sink of the first token",
        statement="Which share of its weights does a head put on the first token at idle queries, over that of uniform "
        "attention, with softmax, with softmax and a sink in the formula (zero or learned), with ReLU, and with sigmoid "
        "attention?",
        talks=("practical:sink-why-sum", "practical:sink-gpt-oss-bias"),
        expected="measured",
        judge=judge_forms,
        controls={"shares of the forms exchanged": jd.rolled(measured_share="attention")},
        rivals={
            "nothing moves": jd.off(STILL_FORMS),
            "token 0 is left at the weight of uniform attention": UNIFORM_FORMS,
            "token 0 has all weight": ALL_FORMS,
        },
        recorded={
            "share of token 0, softmax": (2.24, 4.5, 6.76),
            "share of token 0, zero_sink": (2.42, 4.503, 6.59),
            "share of token 0, sink_bias": (1.87, 4.266, 6.66),
            "share of token 0, relu": (-0.288, 0.1818, 0.652),
            "share of token 0, sigmoid": (2, 4.952, 7.91),
        },
    ),
)


START = 5  # record from which on laws are fitted: an eighth of the steps
LAWS: dict[str, Callable[..., Any]] = {"ln t": np.log, "the square root of t": np.sqrt, "t": lambda t: t}
EXPLAINED = {name: f"variance of the margin explained by a line in {name}" for name in LAWS}  # readings
CORRELATION = "rank correlation along the steps"
MORE = "weight on token 0 at idle queries, with triggers minus without"
LESS = "size of its value over others, without triggers minus with"


def late(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Steps and margins from an eighth of the training on."""
    part = ds.isel(step=slice(START, None))
    return part.steps, part.measured_margin


def slopes(x: xr.DataArray, y: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of every run."""
    x, y = x - x.mean("step"), y - y.mean("step")
    return (x * y).sum("step") / (x * x).sum("step")


def explained(x: xr.DataArray, y: xr.DataArray) -> xr.DataArray:
    """Share of the variance along the steps that a straight line in x explains, of every run; 0 of a constant."""
    y = y - y.mean("step")
    rest, total = y - slopes(x, y) * (x - x.mean("step")), (y**2).sum("step", min_count=1)
    return (1 - (rest**2).sum("step") / total.where(total > 0)).where(total != 0, 0.0)


def judge_growth(ds: xr.Dataset) -> list[jd.Reading]:
    """Variance of the margins that each law explains."""
    steps, margin = late(ds)
    jd.need(ds, step=8)
    fits = [jd.mean_reading(EXPLAINED[name], explained(law(steps), margin), over="seed") for name, law in LAWS.items()]
    return fits


def growing_as(name: str) -> dict[str, Callable[[xr.Dataset], float]]:
    """What a margin that is a line in one law shows of each."""

    def shown(law: Callable[[xr.DataArray], xr.DataArray]) -> Callable[[xr.Dataset], float]:
        return lambda ds: float(explained(law(late(ds)[0]), LAWS[name](late(ds)[0])).mean())

    return {EXPLAINED[other]: shown(law) for other, law in LAWS.items()}


def judge_drain(ds: xr.Dataset) -> list[jd.Reading]:
    """Rank correlation of the drain with the weight on token 0 along the steps."""
    moved = ds.measured_drain.std("step") * ds.measured_idle.std("step")
    correlation = spearman(ds.measured_drain, ds.measured_idle, "step").where(moved != 0, 0.0)  # of a constant
    return [jd.mean_reading(CORRELATION, correlation, over="seed")]


def judge_needed(ds: xr.Dataset) -> list[jd.Reading]:
    """Weight on token 0 where the head is idle and its drain, with triggers against without, in the same seeds."""
    jd.need(ds, triggers=(0.0, 3.0))
    end = ds.isel(step=-1)
    more = end.measured_idle.sel(triggers=3.0) - end.measured_idle.sel(triggers=0.0)
    less = end.measured_drain.sel(triggers=0.0) - end.measured_drain.sel(triggers=3.0)
    return [jd.mean_reading(MORE, more, over="seed"), jd.mean_reading(LESS, less, over="seed")]


def shuffled(ds: xr.Dataset) -> xr.Dataset:
    """A control: the drains are those of other steps, in an order chosen once."""
    order = np.random.default_rng(0).permutation(ds.sizes["step"])
    return ds.assign(measured_drain=ds.measured_drain.isel(step=order).drop_vars("step", errors="ignore"))


def plot_growth(ds: xr.Dataset, fig: Figure) -> None:
    """Margin and drain along the logarithm of the steps."""
    axes = fig.subplots(1, 3)
    axis = next((name for name in ("lr", "triggers") if name in ds.dims), None)
    for value, color in zip([None] if axis is None else ds[axis].values, ("measured", "third"), strict=False):
        part = ds if value is None else ds.sel({axis: value})
        label = "softmax" if value is None else f"{axis} {value:g}"
        steps = part.steps.values.reshape(-1, ds.sizes["step"])[0]
        for ax, name in zip(axes, ("idle", "margin", "drain"), strict=True):
            plotting.band(ax, steps[1:], part[f"measured_{name}"].transpose(..., "step").values[..., 1:], label, color)
    for ax, label in zip(axes, ("weight on token 0, idle", r"margin $\Delta$", "size of its value / others"), strict=True):
        ax.set(xscale="log", xlabel="step", ylabel=label)


GROWTH_STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Backcopy),
    paper=jd.grid(Backcopy, lr=3e-3, every=20.0, vocabulary=33, length=48, width=64, hidden=256, batch=64),
    seeds=8,
    paper_seeds=32,
    evidence="network",
    source="arXiv:2410.13835, section 2 (task and mechanism); sizes and bounds ours",
    tested="One-block transformers with one head on the Bigram-Backcopy task: sequences of {length} of {vocabulary} tokens that "
    "begin with token 0, batches of {batch}, 2400 steps of SGD at the rate {lr}; {seeds} seeds. The margin is the score of token "
    "0 minus the mean score of the other keys, at queries that are no triggers; curves are read from an eighth of the steps on.",
    plot=plot_growth,
    caption="Weight on token 0 at idle queries, margin of its score and size of its value along training: median and central 90% "
    "of the runs.",
)

SGD = jd.grid(Backcopy, optimizer="sgd", lr=1.0, every=60.0)
WORLDS = jd.grid(Backcopy, triggers=[0.0, 3.0])


CLAIMS = (
    *BB_EMERGE_CLAIMS,
    GROWTH_STUDY.claim(
        id="sink.bb_log_growth",
        title="How does the margin of a sink's score grow in a trained network?",
        statement=r"By which law does the margin of a sink's score grow along the steps $t$ of SGD? The readings are the shares of "
        r"its variance along a run that lines in $\ln t$, in $\sqrt t$ and in $t$ explain.",
        expected="measured",
        judge=judge_growth,
        rivals={
            "nothing moves": jd.off(dict.fromkeys(EXPLAINED.values(), 0.0)),
            "it grows as the logarithm, and nothing else": growing_as("ln t"),
            "it grows in proportion to the steps": growing_as("t"),
        },
        quick=SGD,
        paper=SGD,
        seeds=32,
        paper_seeds=64,
        recorded={
            "variance of the margin explained by a line in ln t": (0.803, 0.867, 0.931),
            "variance of the margin explained by a line in the square root of t": (0.762, 0.8283, 0.894),
            "variance of the margin explained by a line in t": (0.7, 0.7685, 0.837),
        },
        recorded_seeds=64,
    ),
    GROWTH_STUDY.claim(
        id="sink.value_drain",
        title="Does the value of the first token shrink as its sink grows?",
        statement="Does what the first token writes shrink, over the mean of other tokens, as its weight at idle queries grows? "
        "The reading is the rank correlation of the two along the steps of a run.",
        expected="measured",
        judge=judge_drain,
        rivals={"nothing moves": jd.off({CORRELATION: 0.0})},
        quick=SGD,
        paper=SGD,
        paper_seeds=64,
        controls={"steps of the drain permuted": shuffled},
        recorded={
            "rank correlation along the steps": (-0.891, -0.7647, -0.638),
        },
    ),
    GROWTH_STUDY.claim(
        id="sink.bb_needed",
        title="Is there a sink where the head has nothing to do at all?",
        statement="Does a head that never has anything to copy make a sink of the first token, too? The readings are the weight on "
        "the first token at idle queries with three triggers in the task minus that without any, and the size of what its value "
        "writes, over the mean of other tokens, without triggers minus with them.",
        talks=("practical:sink-why-sum",),
        tested="One-block transformers with one head on the Bigram-Backcopy task: sequences of {length} of {vocabulary} tokens "
        "that begin with token 0, batches of {batch}, 600 steps of Adam at the rate {lr}; {seeds} seeds.",
        expected="measured",
        judge=judge_needed,
        seeds=24,
        rivals={"triggers make no difference": jd.off({MORE: 0.0, LESS: 0.0})},
        quick=WORLDS,
        paper=WORLDS,
        paper_seeds=64,
        controls={
            "worlds exchanged": jd.Control(
                jd.rolled(measured_idle="triggers", measured_drain="triggers"), breaks="without triggers minus with them"
            )
        },
        recorded={
            "weight on token 0 at idle queries, with triggers minus without": (0.188, 0.2926, 0.397),
            "size of its value over others, without triggers minus with": (0.498, 0.7508, 1.01),
        },
    ),
)
