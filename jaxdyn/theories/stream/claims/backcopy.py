"""Claims on caches in networks that have a sink and in networks that have none: the Bigram-Backcopy task, texts of 50 lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.trials.language import EDGES
from jaxdyn.theories.stream.published import PRETRAINED
from jaxdyn.theories.stream.trials.backcopy import Streamed, trial

__all__ = ["CLAIMS", "judge_breaks", "judge_holds", "judge_stable", "ratio"]

SHOWN = {"dense": "control", "window": "theory", "absolute": "fourth", "replaced": "third", "1 sink": "measured"}
LATE = slice(2, None)  # stretches: the first two lengths of training are left out
SHARES = xr.DataArray(np.diff(EDGES)[LATE] / (EDGES[-1] - EDGES[2]), dims="stretch")
SINK = 0.25  # least weight on token 0 at idle queries, mean over runs: uniform attention has 0.09


def ratio(ds: xr.Dataset, policy: str, against: str) -> xr.DataArray:
    """Perplexity with one policy over that with another, on the same texts from two lengths of training on."""
    whole = (ds.measured_lacks.isel(stretch=LATE) * SHARES).sum("stretch", skipna=False)
    return np.exp(whole.sel(policy=policy, drop=True) - whole.sel(policy=against, drop=True))


def slope(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Slope of the logarithm of the perplexity in the logarithm of the position, a decade, by least squares."""
    y = ds.measured_lacks.sel(policy=policy, drop=True).isel(stretch=LATE)
    x = np.log10(ds.place.isel(stretch=LATE))
    x = x - x.mean("stretch")
    return (x * y).sum("stretch", skipna=False) / (x**2).sum("stretch")


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: both parts of the task are learned, on average over runs."""
    return [
        jd.gate("KL divergence elsewhere, nats, mean over runs", ds.idle_lacks.mean("seed"), at_most=0.1),
    ]


def has_sink(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: trained, and a sink."""
    return [*trained(ds), jd.gate("weight on token 0 at idle queries, mean over runs", ds.idle.mean("seed"), at_least=SINK)]


def judge_breaks(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexity of a window over that of a cache with one sink, in networks that have a sink."""
    lost = ratio(ds, "window", "1 sink")
    return [*has_sink(ds), jd.mean_within("perplexity, 0 + L over 1 + (L - 1)", lost, over="seed", low=1.5)]


def judge_holds(ds: xr.Dataset) -> list[jd.Check]:
    """The same, run by run, in networks that have a sink and in networks that have none."""
    jd.need(ds, decay=(0.0, 0.1))
    with_sink, without = ds.sel(decay=0.0), ds.sel(decay=0.1)
    return [
        *has_sink(with_sink),
        jd.gate("weight on token 0 at idle queries with weight decay, largest of the runs", without.idle, at_most=SINK / 2),
        jd.within("perplexity with a sink, 0 + L over 1 + (L - 1), every run", ratio(with_sink, "window", "1 sink"), 0.98, 1.02),
        jd.within("perplexity without one, 0 + L over 1 + (L - 1), every run", ratio(without, "window", "1 sink"), 0.98, 1.02),
    ]


def judge_stable(ds: xr.Dataset) -> list[jd.Check]:
    """Slope of the perplexity with one sink, run by run."""
    return [
        *has_sink(ds),
        jd.within("slope of log-perplexity a decade of positions, every run", slope(ds, "1 sink"), -0.01, 0.01),
    ]


def read_by(policy: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach: what is called one sink is read with another policy."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        other = ds.measured_lacks.sel(policy=policy, drop=True)
        changed = xr.where(ds.policy == "1 sink", other, ds.measured_lacks)
        return ds.assign(measured_lacks=changed.transpose(*ds.measured_lacks.dims))

    return breach


def alike(ds: xr.Dataset) -> xr.Dataset:
    """A rival: what is kept does not matter."""
    one = ds.measured_lacks.sel(policy="1 sink", drop=True)
    return ds.assign(measured_lacks=one.broadcast_like(ds.measured_lacks).transpose(*ds.measured_lacks.dims))


def broken(ds: xr.Dataset) -> xr.Dataset:
    """A rival: a window loses what it loses in the published model of 160M weights."""
    lost = np.log(PRETRAINED["vanilla"]["window"] / PRETRAINED["vanilla"]["4 sinks"])
    return ds.assign(measured_lacks=ds.measured_lacks + lost * (ds.policy == "window"))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position in the text, by policy; and the ratio of window and one sink over the weight of the sink."""
    left, right = fig.subplots(1, 2)
    runs = ds.isel(decay=0, drop=True) if "decay" in ds.dims else ds
    x = runs.place.values.reshape(-1, ds.sizes["stretch"])[0]
    for policy, color in SHOWN.items():
        y = np.exp(runs.measured_lacks.sel(policy=policy) + runs.entropy).transpose(..., "stretch")
        plotting.band(left, x, y, policy, plotting.COLORS[color])
    left.set(xscale="log", yscale="log", xlabel="position in the text", ylabel="perplexity")
    plotting.scatter(right, ds.idle, ratio(ds, "window", "1 sink"), label="runs", color="measured", log=False)
    right.set(xlabel="weight on token 0, idle", ylabel="perplexity, 0 + L over 1 + (L - 1)")


SETUP = (
    "one-block decoders with one head and rotary positions, trained by Adam for 2500 steps on sequences of 32 tokens of the "
    "Bigram-Backcopy task, which begin with token 0, and reading texts of 1200 tokens of it through caches of 24 keys"
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Streamed),
    paper=jd.grid(Streamed, steps=10_000, streams=16),
    seeds=6,
    paper_seeds=32,
    evidence="network",
    assumes=jd.below("copy_lacks", 0.1),  # nats at triggers: runs that have learned to copy
    source="arXiv:2309.17453, sections 3.1 and 4.1 (policies, in large language models); arXiv:2410.13835, section 2 (task)",
    plot=plot,
    caption="Left: perplexity over the position in the text, by policy, median and central 90% of the runs with a sink. Right: "
    "perplexity of a window over that with one sink, against the weight of the sink, one point a run.",
)
BOTH = {"decay": [0.0, 0.1]}

CLAIMS = (
    STUDY.claim(
        id="stream.window_breaks",
        statement=f"Does a window break where a sink is? Not here: for {SETUP}, the mean weight on token 0 where nothing is to be "
        "copied is above 0.25 on average over 6 runs (uniform attention: 0.09), and the perplexity of a window is that of a cache "
        "which keeps token 0, to 0.2% on average over those that have learned the task (positions 48 to 1200).",
        expected="measured",
        judge=judge_breaks,
        controls={"weight decay 0.1: no sink": {"decay": 0.1}},
        rivals={"what is kept does not matter": alike},
        found={"perplexity, 0 + L over 1 + (L - 1)": (0.998, 1.002)},
    ),
    STUDY.claim(
        id="stream.window_holds",
        statement=f"For {SETUP}, the perplexity of a window is within 2% of that of a cache which keeps token 0, in each of 12 "
        "runs, both where the head has a sink on token 0 (on average over runs) and where weight decay 0.1 has kept it from having "
        "one (positions 48 to 1200).",
        quick=jd.grid(Streamed, **BOTH),
        paper=jd.grid(Streamed, **BOTH, steps=10_000, streams=16),
        expected="measured",
        judge=judge_holds,
        controls={"read by a dense cache": read_by("dense")},
        rivals={"windows break as in the model of 160M weights": broken},
        found={
            "perplexity with a sink, 0 + L over 1 + (L - 1), every run": (0.999, 1.001),
            "perplexity without one, 0 + L over 1 + (L - 1), every run": (0.999, 1.001),
        },
    ),
    STUDY.claim(
        id="stream.stable",
        statement=f"For {SETUP}, the perplexity with token 0 kept, at positions within the cache, changes by less than 1% a decade "
        "of positions between 48 and 1200, in each of 6 runs that has learned the task.",
        expected="measured",
        judge=judge_stable,
        controls={"read by a dense cache": read_by("dense")},
        rivals={"it grows as with a dense cache": read_by("dense")},
        found={"slope of log-perplexity a decade of positions, every run": (-0.001, 0.001)},
    ),
)
