"""Claims on caches in networks that have a sink and in networks that have none: the Bigram-Backcopy task, texts of 50 lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.trials.language import EDGES
from jaxdyn.theories.stream.trials.backcopy import POLICIES, Streamed, trial

__all__ = ["CLAIMS", "judge_breaks", "judge_count", "judge_holds", "judge_replaced", "judge_stable", "ratio"]

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
        jd.gate("KL divergence at triggers, nats, mean over runs", ds.copy_lacks.mean("seed"), at_most=0.1),
        jd.gate("KL divergence elsewhere, nats, mean over runs", ds.idle_lacks.mean("seed"), at_most=0.1),
    ]


def has_sink(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: trained, and a sink."""
    return [*trained(ds), jd.gate("weight on token 0 at idle queries, mean over runs", ds.idle.mean("seed"), at_least=SINK)]


def judge_breaks(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexity of a window over that of a cache with one sink, in networks that have a sink."""
    lost = ratio(ds, "window", "1 sink")
    return [
        *has_sink(ds),
        jd.mean_within("perplexity, 0 + L over 1 + (L - 1)", lost, over="seed", low=1.5),
        jd.at_least("perplexity, 0 + L over 1 + (L - 1), largest of the runs", lost.max("seed"), 1.5),
    ]


def judge_holds(ds: xr.Dataset) -> list[jd.Check]:
    """The same in networks that have none: nothing changes, run by run."""
    return [
        *trained(ds),
        jd.gate("weight on token 0 at idle queries, largest of the runs", ds.idle, at_most=SINK),
        jd.within("perplexity, 0 + L over 1 + (L - 1), every run", ratio(ds, "window", "1 sink"), 0.98, 1.02),
    ]


def judge_stable(ds: xr.Dataset) -> list[jd.Check]:
    """Slope of the perplexity with one sink."""
    return [
        *has_sink(ds),
        jd.mean_within("slope of log-perplexity a decade of positions", slope(ds, "1 sink"), over="seed", low=-0.01, high=0.01),
    ]


def judge_count(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexity with 1, 2 and 4 sinks over that with 8, run by run."""
    return [
        *has_sink(ds),
        *(jd.within(f"perplexity, {name} over 8, every run", ratio(ds, name, "8 sinks"), 0.99, 1.01) for name in POLICIES[1:4]),
    ]


def judge_replaced(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexity with another token in the place of token 0 over that with token 0, and over a window's."""
    return [
        *has_sink(ds),
        jd.mean_within("perplexity, replaced over token 0", ratio(ds, "replaced", "1 sink"), over="seed", high=1.05),
    ]


def read_by(policy: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach: what is called one sink is read with another policy."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        other = ds.measured_lacks.sel(policy=policy, drop=True)
        one = ds.policy.isin(["1 sink", "2 sinks", "4 sinks"])
        return ds.assign(measured_lacks=xr.where(one, other, ds.measured_lacks).transpose(*ds.measured_lacks.dims))

    return breach


def alike(ds: xr.Dataset) -> xr.Dataset:
    """A rival: what is kept does not matter."""
    one = ds.measured_lacks.sel(policy="1 sink", drop=True)
    return ds.assign(measured_lacks=one.broadcast_like(ds.measured_lacks).transpose(*ds.measured_lacks.dims))


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
    "one-block decoders with one head and rotary positions, trained by Adam for 2500 steps on the Bigram-Backcopy task (17 tokens, "
    "3 of them triggers, sequences of 32 that begin with token 0), which then read texts of 1600 tokens of the task through caches "
    "of 32 keys; perplexities are of positions 64 to 1600"
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Streamed),
    paper=jd.grid(Streamed, steps=10_000, streams=16),
    seeds=6,
    paper_seeds=32,
    evidence="network",
    source="arXiv:2309.17453, sections 3.1 to 3.3 and 4.1 (policies, large language models); arXiv:2410.13835, section 2 (task)",
    plot=plot,
    caption="Left: perplexity over the position in the text, by policy, median and central 90% of the runs with a sink. Right: "
    "perplexity of a window over that with one sink, against the weight of the sink, one point a run.",
)

CLAIMS = (
    STUDY.claim(
        id="stream.window_breaks",
        statement=f"Does a window break where a sink is? In {SETUP}.",
        expected="measured",
        judge=judge_breaks,
        controls={"weight decay 0.1: no sink": {"decay": 0.1}},
        rivals={"what is kept does not matter": alike},
    ),
    STUDY.claim(
        id="stream.window_holds",
        statement=f"Without a sink a window breaks nothing. In {SETUP}.",
        quick=jd.grid(Streamed, decay=0.1),
        judge=judge_holds,
        bounds="derived",
        controls={"no weight decay: a sink": {"decay": 0.0}},
        rivals={"the text is read by a dense cache": read_by("dense")},
    ),
    STUDY.claim(
        id="stream.stable",
        statement=f"A cache with one sink reads texts of any length. In {SETUP}.",
        judge=judge_stable,
        bounds="derived",
        controls={"dense": read_by("dense"), "positions of the text": read_by("absolute")},
        rivals={"dense again": read_by("dense")},
    ),
    STUDY.claim(
        id="stream.sink_count",
        statement=f"One sink suffices. In {SETUP}.",
        judge=judge_count,
        bounds="derived",
        controls={"none is kept": read_by("window")},
        rivals={"dense": read_by("dense")},
    ),
    STUDY.claim(
        id="stream.linebreak",
        statement=f"Is it the place of the sink or its content? In {SETUP}.",
        expected="measured",
        judge=judge_replaced,
        controls={"none is kept": read_by("window")},
        rivals={"what is kept does not matter": alike},
    ),
)
