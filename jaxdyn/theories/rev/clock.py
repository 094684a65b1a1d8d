r"""The clock of a row: exact given its visits, and as a mean over the randomness of batch-1 SGD.

The mean is not that of gradient flow in the transition, :math:`\eta t \approx N \ln M`, where the variance of the visits counts.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.one_layer import OneLayer, trial

TARGET = 0.012  # by how much the mean probability of a target may differ from its law
WRONG = 0.05  # by how much the mean probability of one wrong token, or of all other tokens, over its law, may differ from 1


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Rows given their visits to rounding; means over seeds against their laws at every reading time, for all together."""
    target = (ds.measured_mean - ds.predicted_mean).sel(token="target")
    wrong = [xr.where(mean.token == "target", 1 - mean, mean) for mean in (ds.measured_mean, ds.predicted_mean)]
    name = "mean probability not to hit the target, and of a wrong token, / law"
    return [
        jd.mean_within("mean probability of a target minus its law", target, over="seed", low=-TARGET, high=TARGET),
        jd.mean_within(name, wrong[0] / wrong[1], over="seed", low=1 - WRONG, high=1 + WRONG),
        jd.at_most("row given its visits, relative error", jd.relative_error(ds, "row"), 1e-12),
    ]


STILL = jd.swap(predicted_mean=lambda ds: 1 / ds["size"], predicted_row=lambda ds: 1 / ds["size"])


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The mean over runs against both laws, and single rows against their clocks."""
    left, right = fig.subplots(1, 2)
    measured = ds.measured_mean.sel(token="target").transpose("seed", "record")
    t = ds.t.isel(seed=0).values
    plotting.band(left, t, measured.values, "network: median and 90% of runs")
    left.plot(t, measured.mean("seed"), "o", color=plotting.COLORS["measured"], label="network: mean of runs")
    for name, label, color in (("predicted_mean", "binomial mixture", "theory"), ("flow_mean", "gradient flow", "third")):
        left.plot(t, ds[name].sel(token="target").isel(seed=0), "--", color=plotting.COLORS[color], label=label)
    left.set(xscale="log", xlabel="steps t", ylabel="probability of a trained target")
    left.legend(loc="upper left", fontsize=7.5)
    few = ds.isel(seed=slice(8))
    plotting.scatter(right, 1 - few.predicted_row.sel(token="target"), 1 - few.measured_row.sel(token="target"), "rows", log=True)
    right.set(xlabel="$1 - p(u_k)$ of the row's clock", ylabel="$1 - p$ of the network")


study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer, shown=0.25),
    paper=jd.grid(OneLayer, vocabulary=1000, test_indices=20, steps=100_000),
    seeds=32,
    paper_seeds=64,
    evidence="network",
    bounds=jd.tuned(on="0:32", confirmed_on="31000000:31000032"),
    judge=judge,
    plot=plot,
    caption="Left: probability of a trained target along training; median and central 90% of the runs, points their mean, dashed "
    "the laws of the mean. Right: $1 - p$ of trained rows against that of their clocks, one point per row and time, of eight "
    "runs.",
    source="arXiv:2405.04669, proof of Theorem 3",
    tested=r"One-layer transformer (attention on the first token alone) from zero weights, $\eta$ = {eta}, {steps} steps of SGD "
    r"on one "
    "of the training sequences drawn at random, M = {vocabulary} tokens, a share {shown} of {train_indices} pairs and "
    "{test_indices} one-way pairs in training; {seeds} seeds.",
)

clock = study.claim(
    id="rev.clock",
    talks=("training:rev-theorem-3",),
    title="How often a fact was shown decides how well it is known",
    statement=r"In a one-layer transformer from zero weights whose attention looks at the first token, an entity, alone and "
    r"whose decoder is free (no entry is tied to another), a fact that SGD has drawn k times is answered with the probability "
    r"$p = 1/(1 + (M-1)e^{-u_k})$, where $u_{k+1} = u_k + \eta M/(M-1+e^{u_k})$, $u_0 = 0$, M the number of tokens and $\eta$ the "
    r"step size. If each step draws it with the odds 1/N, the mean over runs after t steps is the average of p over "
    r"$k \sim \mathrm{Binom}(t, 1/N)$, to within .012, and those of $1 - p$ and of the probability of a wrong token are within "
    r"5%; at step sizes from .5 to .9 gradient flow's value, which the mean approaches as $\eta \to 0$, is not.",
    holds={"eta": (0.5, 0.9)},
    controls={"relation among the keys": jd.Control({"context": "both"}, breaks="gradient flow's value")},
    rivals={"no row moves": jd.off(STILL), "gradient flow": jd.swap(predicted_mean="flow_mean")},
)

CLAIMS = (clock,)
