r"""How the margin of the sink's score grows along training, which law fits it, and how the size of its value falls with it."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import spearman
from jaxdyn.theories.sink.backcopy import Backcopy, trial

__all__ = ["CLAIMS", "explained", "judge_drain", "judge_growth", "judge_needed", "slopes"]

START = 5  # record from which on laws are fitted: an eighth of the steps
LAWS = {"ln t": np.log, "the square root of t": np.sqrt, "t": lambda t: t}


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


def judge_growth(ds: xr.Dataset) -> list[jd.Check]:
    """Variance of the margins that each law explains, and the slope in the logarithm of the steps."""
    steps, margin = late(ds)
    jd.need(ds, step=8)
    fits = [
        jd.mean_within(f"variance of the margin explained by a line in {name}", explained(law(steps), margin), over="seed", low=0.5)
        for name, law in LAWS.items()
    ]
    return [
        *fits,
        jd.mean_within("slope of the margin in ln t", slopes(np.log(steps), margin), over="seed", low=0.5),
    ]


def judge_drain(ds: xr.Dataset) -> list[jd.Check]:
    """Rank correlation of the drain with the weight on token 0 along the steps."""
    moved = ds.measured_drain.std("step") * ds.measured_idle.std("step")
    correlation = spearman(ds.measured_drain, ds.measured_idle, "step").where(moved != 0, 0.0)  # of a constant
    return [jd.mean_within("rank correlation along the steps", correlation, over="seed", high=-0.5)]


def judge_needed(ds: xr.Dataset) -> list[jd.Check]:
    """Weight on token 0 where the head is idle and its drain, with triggers against without, in the same seeds."""
    jd.need(ds, triggers=(0.0, 3.0))
    end = ds.isel(step=-1)
    more = end.measured_idle.sel(triggers=3.0) - end.measured_idle.sel(triggers=0.0)
    less = end.measured_drain.sel(triggers=0.0) - end.measured_drain.sel(triggers=3.0)
    return [
        jd.mean_within("weight on token 0 at idle queries, with triggers minus without", more, over="seed", low=0.1),
        jd.mean_within("size of its value over others, without triggers minus with", less, over="seed", low=0.2),
    ]


# Nothing moves.
STILL = jd.initial("step", "measured_idle", "measured_drain", "measured_margin")


def shuffled(ds: xr.Dataset) -> xr.Dataset:
    """A control: the drains are those of other steps, in an order chosen once."""
    order = np.random.default_rng(0).permutation(ds.sizes["step"])
    return ds.assign(measured_drain=ds.measured_drain.isel(step=order).drop_vars("step", errors="ignore"))


def plot(ds: xr.Dataset, fig: Figure) -> None:
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


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Backcopy),
    paper=jd.grid(Backcopy, lr=3e-3, every=20.0, vocabulary=33, length=48, width=64, hidden=256, batch=64),
    seeds=8,
    paper_seeds=32,
    evidence="network",
    source="arXiv:2410.13835, section 2 (task and mechanism); sizes and bounds ours",
    rivals={"nothing moves": STILL},
    plot=plot,
    caption="Weight on token 0 at idle queries, margin of its score and size of its value along training: median and central 90% "
    "of the runs.",
)
SETUP = (
    "one-block transformers with one head on the Bigram-Backcopy task (17 tokens, sequences of 32 that begin "
    "with token 0, batches of 8)"
)
SGD = jd.grid(Backcopy, optimizer="sgd", lr=1.0, every=60.0)
WORLDS = jd.grid(Backcopy, triggers=[0.0, 3.0])

CLAIMS = (
    STUDY.claim(
        id="sink.bb_log_growth",
        statement=r"How does the margin of the sink's score grow? "
        rf"In {SETUP}, trained by SGD for 2400 steps at the rate 1, a line in $\ln t$ explains from an eighth of the steps on 87% "
        r"of the variance of the margin along a run (mean of 64 runs, interval 81% to 93%), a line in $\sqrt t$ 83% (77% to 89%), "
        r"a line in $t$ 77% (70% to 83%). The slope in $\ln t$ is 1.5 (1.2 to 1.8); 8 runs leave it between 0.3 and 2.5.",
        expected="measured",
        judge=judge_growth,
        quick=SGD,
        paper=SGD,
        paper_seeds=64,
        found={  # the intervals of 64 runs, and room to either side
            "variance of the margin explained by a line in ln t": (0.78, 0.95),
            "variance of the margin explained by a line in the square root of t": (0.72, 0.92),
            "variance of the margin explained by a line in t": (0.65, 0.87),
            "slope of the margin in ln t": (0.3, 2.5),
        },
    ),
    STUDY.claim(
        id="sink.value_drain",
        statement=f"Does the value of token 0 shrink as the sink grows? In {SETUP}, trained by SGD for 2400 steps at the rate "
        "1, the size of what token 0 writes, over that of the others, falls along a run while the weight on token 0 at idle "
        "queries rises, with a rank correlation of -0.73 (mean of 64 runs, interval -0.80 to -0.67).",
        expected="measured",
        judge=judge_drain,
        quick=SGD,
        paper=SGD,
        paper_seeds=64,
        controls={"steps of the drain permuted": shuffled},
        found={"rank correlation along the steps": (-0.9, -0.6)},
    ),
    STUDY.claim(
        id="sink.bb_needed",
        statement=f"Is there a sink where the head has nothing to do at all? In {SETUP}, trained by Adam for 600 steps, token 0 "
        "has 0.29 more weight at idle queries with three triggers than without any (mean of 64 runs, interval 0.22 to 0.36), and "
        "its value is smaller by 0.74 of what the others write (0.58 to 0.91).",
        expected="measured",
        judge=judge_needed,
        quick=WORLDS,
        paper=WORLDS,
        paper_seeds=64,
        controls={"worlds exchanged": jd.rolled(measured_idle="triggers", measured_drain="triggers")},
        found={
            "weight on token 0 at idle queries, with triggers minus without": (0.15, 0.5),
            "size of its value over others, without triggers minus with": (0.4, 1.2),
        },
    ),
)
