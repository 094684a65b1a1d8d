"""Attention sinks that networks learn: the head of the Bigram-Backcopy task, with several forms of attention."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
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


ALL = {IDLE: all_weight, TRIGGERS: all_weight, VALUE: 1.0}
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

CLAIMS = (
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
