"""Claims on how a network of two layers learns chains in context: a phase of counting tokens, then pairs by an induction head."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.ih.trials.phases import Phases, trial

__all__ = ["CLAIMS", "judge_circuit", "judge_excess", "judge_phases"]

LAST = slice(-8, None)  # records whose mean is the end


def end(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The mean of the last records."""
    mean: xr.DataArray = ds[name].isel(step=LAST).mean("step", skipna=False)
    return mean


def closest(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A curve at the record at which the network's predictions are closest to those by counts of tokens."""
    at = ds.measured_from_unigram.fillna(1e9).argmin("step")
    value: xr.DataArray = ds[name].isel(step=at)
    return value


def excess(ds: xr.Dataset) -> xr.DataArray:
    """Loss at the end above that by counts of pairs, over the gap between both predictors."""
    share: xr.DataArray = (end(ds, "measured_loss") - ds.bigram_loss) / (ds.unigram_loss - ds.bigram_loss)
    return share


def judge_phases(ds: xr.Dataset) -> list[jd.Check]:
    """The way to counts of tokens and away from them, and the loss at the end."""
    least = closest(ds, "measured_from_unigram")
    ratio = np.log(least / closest(ds, "from_uniform"))
    return [
        jd.mean_within(
            "least divergence from counts of tokens, over that at the end",
            least / end(ds, "measured_from_unigram"),
            over="seed",
            high=0.65,
        ),
        jd.mean_within("its logarithm, less that of the divergence from uniform then", ratio, over="seed", high=0.0),
        jd.mean_within("share of the gap between both predictors that is left", excess(ds), over="seed", high=2 / 3),
    ]


def judge_excess(ds: xr.Dataset) -> list[jd.Check]:
    """The loss at the end."""
    return [jd.mean_within("share of the gap between both predictors that is left", excess(ds), over="seed", high=0.6)]


def judge_circuit(ds: xr.Dataset) -> list[jd.Check]:
    """Where both layers look at the end."""
    return [
        jd.mean_within("weight of the first layer on the token before", end(ds, "measured_before"), over="seed", low=1 / 3),
        jd.mean_within("weight of the second on tokens after equal ones", end(ds, "measured_induced"), over="seed", low=0.6),
    ]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing moves, and all is as at the start."""
    names = [f"measured_{name}" for name in ("from_unigram", "from_bigram", "loss", "before", "induced")] + ["from_uniform"]
    return ds.assign({n: ds[n].isel(step=0, drop=True).broadcast_like(ds[n]).transpose(*ds[n].dims) for n in names})


def plot_phases(ds: xr.Dataset, fig: Figure) -> None:
    """Loss over those of both predictors, and the divergences, along training."""
    left, right = fig.subplots(1, 2)
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0] + 1
    plotting.band(left, steps, ds.measured_loss.transpose(..., "step"), "network", "measured")
    for name, label, color in (("unigram_loss", "counts of tokens", "third"), ("bigram_loss", "counts of pairs", "theory")):
        left.axhline(float(ds[name].mean()), linestyle="--", color=plotting.COLORS[color], label=label)
    for name, label, color in (
        ("from_uniform", "uniform", "control"),
        ("measured_from_unigram", "counts of tokens", "third"),
        ("measured_from_bigram", "counts of pairs", "theory"),
    ):
        plotting.band(right, steps, ds[name].transpose(..., "step"), label, color)
    left.set(xlabel="step + 1", ylabel="loss", xscale="log")
    right.set(xlabel="step + 1", ylabel="divergence of the network from", xscale="log", yscale="log")


def plot_circuit(ds: xr.Dataset, fig: Figure) -> None:
    """Weights of both layers along training."""
    ax = fig.subplots()
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    plotting.band(ax, steps, ds.measured_before.transpose(..., "step"), "layer 1: the token before", "measured")
    plotting.band(ax, steps, ds.measured_induced.transpose(..., "step"), "layer 2: tokens after equal ones", "third")
    plotting.band(ax, steps, ds.chance.transpose(..., "step"), "their share of all tokens", "control")
    ax.set(xlabel="step", ylabel="attention weight")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Phases),
    paper=jd.grid(Phases, lr=3e-3, length=100, batch=64, every=50, samples=120),
    seeds=16,
    paper_seeds=16,
    evidence="network",
    source="arXiv:2402.11004, sections 2 and 3; sizes, rate and bounds ours",
    rivals={"nothing moves": still},
    plot=plot_phases,
    caption="Left: loss on held-out sequences along training, and those of both predictors (dashed: mean over runs). Right: "
    "divergence of the network's predictions from three predictors. Median and central 90% of the runs.",
)
ONE_LAYER = {"no first layer": {"first": 0.0}}
SETUP = (
    "networks of two layers of attention without anything else (width 16, learned relative positions), trained by Adam for 600 "
    "steps on sequences of 64 tokens from chains with 3 states whose transition rows are uniform on the simplex"
)
LATE = "(Of 58 runs looked at, five had not formed the circuit by then, and left 0.8 of the gap or more.)"

CLAIMS = (
    STUDY.claim(
        id="ih.phases",
        statement=f"In {SETUP}, the divergence of the predictions from those by counts of tokens falls to a least value, on "
        "average over runs below 0.65 times that at the end, and in the geometric mean below the divergence from the uniform "
        "prediction at that moment; at the end less than two thirds of the gap between the losses by counts of tokens and by "
        f"counts of pairs are left, on average over runs. {LATE}",
        bounds=jd.looked(at="51000000:51000016", confirmed="53000000:53000016"),
        judge=judge_phases,
        controls={**ONE_LAYER, "chains with a uniform stationary law": {"chain": "doubly_stochastic"}},
    ),
    STUDY.claim(
        id="ih.circuit",
        statement=f"In {SETUP}, at the end the first layer puts on average over runs more than a third of its weight on the token "
        "before the query's, and the second one more than 0.6 on tokens that come right after one equal to the query's, at "
        f"queries from position 8 on. {LATE}",
        bounds=jd.looked(at="51000000:51000016", confirmed="53000000:53000016"),
        judge=judge_circuit,
        controls=ONE_LAYER,
        plot=plot_circuit,
        caption="Weights of the first layer on the token before, and of the second layer on tokens that come right after one equal "
        "to the query's, along training: median and central 90% of the runs.",
    ),
    STUDY.claim(
        id="ih.excess",
        statement=f"In {SETUP}, which share of the gap between the losses by counts of tokens and by counts of pairs is left at "
        "the end? About a quarter on average over runs (two sets of 6 runs): the predictions do not become those of counts of "
        "pairs at this size.",
        expected="measured",
        judge=judge_excess,
        controls=ONE_LAYER,
        rivals={"no more than counts of tokens is learned": jd.swap(measured_loss="unigram_loss")},
        found={"share of the gap between both predictors that is left": (0.05, 0.5)},
    ),
)
