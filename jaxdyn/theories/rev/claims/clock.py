"""Claims on the clock of a row: exact given its visits, and in the mean over the randomness of batch-1 SGD."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.rev.claims.one_layer import SOURCE, OneLayer, trial

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


_GRID = jd.grid(OneLayer)
_COMMON = {
    "source": f"{SOURCE}, proof of Theorem 3",
    "trial": trial,
    "judge": judge,
    "plot": plot,
    "quick": _GRID,
    "paper": jd.grid(OneLayer, vocabulary=1000, train_indices=40, test_indices=20, steps=100_000),
    "seeds": 64,
    "paper_seeds": 64,
}

CLAIMS = (
    jd.Claim(
        id="rev.clock",
        statement=r"Under batch-1 SGD a row visited k times has $p = 1/(1 + (M-1)e^{-u_k})$ with "
        r"$u_{k+1} = u_k + \eta M/(M-1+e^{u_k})$, exactly; the mean over runs is the mixture over $k \sim \mathrm{Binom}(t, 1/N)$.",
        form="derived",
        controls={"relation among the keys": {"context": "both"}},
        **_COMMON,
    ),
    jd.Claim(
        id="rev.clock_flow",
        statement=r"The mean over runs of batch-1 SGD is the gradient flow's $p(u)$, $(M-1)u + e^u - 1 = M\eta t/N$. (It is not in "
        r"the transition, $\eta t \approx N \ln M$, where the visits' variance counts; the mixture over visits is.)",
        form="simplified",
        counterpart="derived",
        expected="refuted",
        **_COMMON,
    ),
)
