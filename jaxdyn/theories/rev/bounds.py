r"""The bound of Theorems 3 and 4: its judge, rivals and figure, from :math:`t = 10\,N\ln M/\eta` on, in every sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.one_layer import EXPONENT

LEAST = 0.95  # share of sequences that obey the bound; those of a run are drawn independently
NEAR = 0.02  # how far from its law the mean of 1 - p of a run may be: 1.5% in 3,200 simulated runs
APART = 0.004  # how far from the flow's its exponent may be: SGD's 1 - p is up to 3% larger, which is .003 of ln s, at least 9
LATE = 10  # the bound is judged from this many N ln M / eta steps on
ASSUMES = (jd.above("tokens", 100), jd.below("eta", 1.0), jd.above("eta_over_least", 10.0))  # M >> 100, M^-.99 << eta < 1
CAPTION = (
    r"Left: $1 - p$ of trained sequences against $s = M\eta t/N$, median and central 90% of the sequences of all runs, the "
    r"bound, and the law of the mean. Right: exponent c of the mean probability of a run, median and central 90% of runs, and "
    r"that of gradient flow. One row of panels for each number of tokens M, the first of the other values."
)


def late_enough(ds: xr.Dataset) -> xr.DataArray:
    """Which records are late enough for the bound.

    Raises:
        Inconclusive: if none is.
    """
    late = ds.late >= LATE
    if not bool(late.any()):
        raise jd.Inconclusive(f"no record is late enough: the bound is judged from {LATE} N ln M / eta steps on")
    return late


def judge_share(ds: xr.Dataset, least: float) -> jd.Check:
    """Once t is late nearly all sequences obey the bound.

    Not all: by the chance of SGD one row of some thousands is visited half as often as the mean one.
    """
    counted = late_enough(ds) & ds.drawn & ds.measured_bound.notnull()
    obeys = (ds.measured_bound >= ds.predicted_bound).where(counted).min("record")
    return jd.share_within("share of sequences that obey the bound at all late times", obeys, over=list(obeys.dims), low=least)


def tightness(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Of each run at late times: the mean of 1 - p over its law, and its exponent minus the flow's."""
    late = late_enough(ds)
    missing = ds.measured_missing / (1 - ds.predicted_mean.sel(token="target", drop=True))
    return missing.where(late), (ds.measured_exponent - ds.predicted_exponent).where(late)


def judge_bound(ds: xr.Dataset) -> list[jd.Check]:
    """The bound, and what is missing on average: in each run what the clocks leave."""
    missing, off = tightness(ds)
    return [
        judge_share(ds, LEAST),
        jd.within("mean of 1 - p of a run over its law", missing, 1 - NEAR, 1 + NEAR),
        jd.at_most("exponent of the mean of a run against the flow's", abs(off), APART),
    ]


def answered(p: Callable[[xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], xr.DataArray]:
    """The mean probabilities of both kinds of tokens where that of a target is p."""
    return lambda ds: ds.predicted_mean.where(ds.token != "target", p(ds))


RIVALS: dict[str, Any] = {
    "nothing is learned": jd.off(
        predicted_mean=answered(lambda ds: 1 / ds["size"]),
        predicted_exponent=lambda ds: np.log((ds["size"] - 1) / (2 * (1 - 1 / ds["size"]))) / np.log(ds.s),
    ),
    # logits go on growing at their first rate, so that 1 - p falls exponentially
    "logits that never saturate": jd.swap(
        predicted_mean=answered(lambda ds: 1 - (ds["size"] - 1) / (ds["size"] - 1 + np.exp(ds.s / ds["size"])))
    ),
    "$1 - p = (M-1)/s$, the late limit of gradient flow": jd.swap(predicted_mean=answered(lambda ds: 1 - (ds["size"] - 1) / ds.s)),
    # the end of the theorem's range 0 < c < 1
    "the bound with c = 1": jd.swap(predicted_bound=lambda ds: 1 - (1 - ds.predicted_bound) * ds.s ** (EXPONENT - 1)),
}


def plot_bound(ds: xr.Dataset, fig: Figure) -> None:
    """What is missing to certainty against the bound, and the exponents, for every number of tokens."""
    sizes = np.atleast_1d(ds.vocabulary.values) if "vocabulary" in ds.dims else [None]
    axes = fig.subplots(len(sizes), 2, squeeze=False)
    ds = ds.isel({axis: 0 for axis in ("eta", "shown") if axis in ds.dims})
    for size, (left, right) in zip(sizes, axes, strict=True):
        part = ds if size is None else ds.sel(vocabulary=size)
        one = part.isel(seed=0)
        s, values = one.s, 1 - part.measured_bound.where(part.drawn).transpose("seed", "sequence", "record").values
        plotting.band(left, s.values, values, "network, sequences of all runs")
        bound = 1 - one.predicted_bound
        left.plot(s, bound.where(bound < 1), "--", color=plotting.COLORS["theory"], label=f"bound, c = {EXPONENT}")
        left.plot(s, 1 - one.predicted_mean.sel(token="target"), ":", color=plotting.COLORS["third"], label="law of the mean")
        left.set(xscale="log", yscale="log", xlabel=r"$s = M\eta t/N$", ylabel="$1 - p$", title=f"M = {float(one['size']):g}")
        exponents = part.measured_exponent.transpose("seed", "record").values
        plotting.band(right, s.values, exponents, "exponent of the mean of a run")
        right.plot(s, one.predicted_exponent, "--", color=plotting.COLORS["theory"], label="gradient flow")
        right.set(xscale="log", xlabel=r"$s = M\eta t/N$", ylabel="exponent c")
