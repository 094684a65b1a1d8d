r"""Claims on the clock of a row: exact given its visits, and as a mean over the randomness of batch-1 SGD.

The mean is not that of gradient flow in the transition, :math:`\eta t \approx N \ln M`, where the variance of the visits counts.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.rev.trials.one_layer import OneLayer, trial

__all__ = ["CLAIMS", "deviation", "judge"]


def deviation(ds: xr.Dataset) -> xr.DataArray:
    """Distance of the mean over seeds from the predicted mean, in standard errors."""
    return abs(stats.standard_errors(ds.measured_mean - ds.predicted_mean))


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Rows given their visits to rounding; means over seeds within four standard errors, at every reading time."""
    return [
        jd.at_most("mean over seeds against its law, in standard errors", deviation(ds), 4.0),
        jd.at_most("row given its visits, relative error", jd.relative_error(ds, "row"), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """The mean over runs against both laws, and single rows against their clocks."""
    left, right = fig.subplots(1, 2)
    measured = ds.measured_mean.sel(token="target").transpose("seed", "record")
    t = ds.t.isel(seed=0).values
    plotting.band(left, t, measured.values, "network: median and 90% of runs")
    left.plot(t, measured.mean("seed"), "o", color=plotting.COLORS["measured"], label="network: mean of runs")
    names = {"derived": ("binomial mixture", "theory"), "simplified": ("gradient flow", "third")}
    for form in [f for f in names if "form" in ds.dims and f in ds.form.values]:
        label, color = names[form]
        left.plot(t, ds.predicted_mean.sel(form=form, token="target").isel(seed=0), "--", color=plotting.COLORS[color], label=label)
    left.set(xscale="log", xlabel="steps t", ylabel="probability of a trained target")
    left.legend(loc="upper left", fontsize=7.5)
    few = ds.isel(seed=slice(8))
    plotting.scatter(right, 1 - few.predicted_row.sel(token="target"), 1 - few.measured_row.sel(token="target"), "rows", log=True)
    right.set(xlabel="$1 - p(u_k)$ of the row's clock", ylabel="$1 - p$ of the network")


study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer),
    paper=jd.grid(OneLayer, vocabulary=1000, train_indices=40, test_indices=20, steps=100_000),
    seeds=64,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption="Left: probability of a trained target along training; median and central 90% of the runs, points their mean, dashed "
    "the laws of the mean. Right: $1 - p$ of trained rows against that of their clocks, one point per row and time, of eight runs.",
    source="arXiv:2405.04669, proof of Theorem 3",
)

clock = study.claim(
    id="rev.clock",
    statement=r"In the one-layer model trained by batch-1 SGD, a row visited k times has exactly "
    r"$p = 1/(1 + (M-1)e^{-u_k})$ with $u_{k+1} = u_k + \eta M/(M-1+e^{u_k})$, $u_0 = 0$; the mean over runs is the mixture over "
    r"$k \sim \mathrm{Binom}(t, 1/N)$.",
    form="derived",
    controls={"relation among the keys": {"context": "both"}},
)
clock_flow = clock.as_printed(
    id="rev.clock_flow",
    statement=r"In the one-layer model, the mean over runs of batch-1 SGD is the gradient flow's $p = 1/(1 + (M-1)e^{-u})$ with "
    r"$(M-1)u + e^u - 1 = M\eta t/N$.",
    form="simplified",
)

CLAIMS = (clock, clock_flow)
