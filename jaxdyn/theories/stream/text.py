"""Caches in a small language model, which has no sink: policies against recomputation on texts of 50 lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.sink.language import EDGES, Language, trial
from jaxdyn.theories.stream.published import FOUR_HUNDRED_K, PRETRAINED

__all__ = [
    "CLAIMS",
    "judge_dense",
    "judge_level",
    "judge_positions",
    "judge_recomputed",
    "judge_window",
    "mean_ratio",
    "over_recomputed",
    "perplexity",
]

LATE = slice(2, None)  # stretches: the first two lengths of training are left out
SHARES = xr.DataArray(np.diff(EDGES)[LATE] / (EDGES[-1] - EDGES[2]), dims="stretch")
MORE = ("2 sinks", "4 sinks", "8 sinks")
SHOWN = {"dense": "control", "window": "theory", "recomputed": "third", "4 sinks": "measured", "absolute": "fourth"}


def over_recomputed(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Perplexity with a policy over that of a window with recomputation, on every stretch of the same texts."""
    loss = ds.measured_loss.isel(stretch=LATE)
    return np.exp(loss.sel(policy=policy, drop=True) - loss.sel(policy="recomputed", drop=True))


def perplexity(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Perplexity with a policy from two lengths of training on."""
    whole = (ds.measured_loss.isel(stretch=LATE) * SHARES).sum("stretch", skipna=False)
    return np.exp(whole.sel(policy=policy, drop=True))


def mean_ratio(ds: xr.Dataset, policy: str, against: str) -> xr.DataArray:
    """Perplexity with one policy over that with another, from two lengths of training on."""
    return perplexity(ds, policy) / perplexity(ds, against)


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: the network has learned more than the frequencies of tokens."""
    return [
        jd.gate(
            "validation loss at the end over that at the start",
            ds.validation.isel(step=-1) / ds.validation.isel(step=0),
            at_most=0.6,
        )
    ]


def judge_window(ds: xr.Dataset) -> list[jd.Check]:
    """A window against one and four sinks, in networks without a sink, run by run."""
    return [
        *trained(ds),
        jd.gate("share of heads with a sink at the end", ds.measured_sink.isel(step=-1), at_most=0.0),
        *(
            jd.within(f"perplexity, window over {name}, every run", mean_ratio(ds, "window", name), 0.97, 1.03)
            for name in ("1 sink", "4 sinks")
        ),
    ]


def judge_recomputed(ds: xr.Dataset) -> list[jd.Check]:
    """One and four sinks against recomputation on every stretch."""
    return [
        *trained(ds),
        *(
            jd.within(f"perplexity, {name} over recomputation, every run and stretch", over_recomputed(ds, name), 0.97, 1.03)
            for name in ("1 sink", "4 sinks")
        ),
    ]


def judge_level(ds: xr.Dataset) -> list[jd.Check]:
    """Slope in the position of one sink's perplexity over recomputation's on the same tokens."""
    x = np.log10(ds.place.isel(stretch=LATE))
    x, y = x - x.mean("stretch"), np.log(over_recomputed(ds, "1 sink"))
    slope = (x * y).sum("stretch", skipna=False) / (x**2).sum("stretch")
    return [
        *trained(ds),
        jd.within("slope of the log-ratio to recomputation a decade of positions, every run", slope, -0.01, 0.01),
    ]


def judge_dense(ds: xr.Dataset) -> list[jd.Check]:
    """A dense cache beyond the length of training against recomputation."""
    return [
        *trained(ds),
        jd.at_least("perplexity, dense over recomputation, every run", mean_ratio(ds, "dense", "recomputed"), 1.3),
    ]


def judge_positions(ds: xr.Dataset) -> list[jd.Check]:
    """Positions of the text against positions within the cache, both with one sink."""
    return [
        *trained(ds),
        jd.at_least("perplexity, absolute over in-cache, every run", mean_ratio(ds, "absolute", "1 sink"), 1.01),
    ]


def judge_count(ds: xr.Dataset) -> list[jd.Check]:
    """Two, four and eight first tokens against one, run by run."""
    return [
        *trained(ds),
        *(jd.within(f"perplexity, {name} over 1, every run", mean_ratio(ds, name, "1 sink"), 0.99, 1.01) for name in MORE),
    ]


def read_by(policy: str, *, instead: tuple[str, ...] = ("1 sink", "4 sinks")) -> Callable[[xr.Dataset], xr.Dataset]:
    """What is named as some policies is read with another one."""

    def changed(ds: xr.Dataset) -> xr.DataArray:
        return xr.where(ds.policy.isin(instead), ds.measured_loss.sel(policy=policy, drop=True), ds.measured_loss)

    return jd.swap(measured_loss=changed)


# All policies are one.
ALIKE = jd.swap(measured_loss=lambda ds: ds.measured_loss.sel(policy="recomputed", drop=True))


def exchanged(ds: xr.Dataset) -> xr.DataArray:
    """Losses if one sink is read at positions of the text, and what is named so, within the cache."""
    inside, outside = ds.measured_loss.sel(policy="1 sink", drop=True), ds.measured_loss.sel(policy="absolute", drop=True)
    return xr.where(ds.policy == "1 sink", outside, xr.where(ds.policy == "absolute", inside, ds.measured_loss))


def broken(*names: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """Some policies lose what a window loses in the published model of 160M weights."""
    lost = np.log(PRETRAINED["vanilla"]["window"] / PRETRAINED["vanilla"]["4 sinks"])
    return jd.swap(measured_loss=lambda ds: ds.measured_loss + lost * ds.policy.isin(names))


def helped(ds: xr.Dataset) -> xr.DataArray:
    """Losses if more first tokens help as much as in the published figures of Llama-2-7B."""
    paper = FOUR_HUNDRED_K["Llama-2-7B"]
    gain = [np.log(paper[p] / paper["1 sink"]) if p in MORE else 0.0 for p in ds.policy.values]
    return ds.measured_loss + xr.DataArray(gain, dims="policy")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position in the text, by policy, and over that of recomputation."""
    left, right = fig.subplots(1, 2)
    x = ds.place.values.reshape(-1, ds.sizes["stretch"])[0]
    for policy, color in SHOWN.items():
        one, again = (ds.measured_loss.sel(policy=name).transpose(..., "stretch") for name in (policy, "recomputed"))
        plotting.band(left, x, np.exp(one), policy, plotting.COLORS[color])
        plotting.band(right, x, np.exp(one - again), None, plotting.COLORS[color])
    left.set(xscale="log", yscale="log", xlabel="position in the text", ylabel="perplexity")
    right.set(xscale="log", xlabel="position in the text", ylabel="perplexity over recomputation's")


SETUP = (
    "decoders of two layers with four heads and rotary positions, trained by Adam for 800 steps on sequences of 32 bytes of "
    "Python's own manual, reading 1600 bytes of its held-out part through caches of 32 keys"
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Language),
    paper=jd.grid(Language, width=96, hidden=256, layers=3, length=64, batch=16, steps=4000, streams=16),
    seeds=3,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2309.17453, figures 1 and 3, section 3.2 (large language models); the size is ours",
    rivals={"what is kept, and where, does not matter": ALIKE},
    plot=plot,
    caption="Perplexity over the position in the text by policy, and over that of a window with recomputation: median and central "
    "90% of the runs.",
)
LOOKED = jd.looked(at="0:3", confirmed="4000:4003")
BROKEN = {"a dense cache, beyond the length of training": read_by("dense"), "positions of the text": read_by("absolute")}

CLAIMS = (
    STUDY.claim(
        id="stream.text_window",
        statement=f"Where no sink has emerged, a window breaks nothing: for {SETUP}, no head has a mean weight above 0.3 on the "
        "first token, and the perplexity of a window is within 3% of that with one or with four first tokens kept, in every run "
        "(positions 64 to 1600).",
        judge=judge_window,
        bounds=jd.looked(at="9000000:9000003", confirmed="9100000:9100003"),
        controls={"read by a dense cache": read_by("dense", instead=("window",))},
        rivals={"windows break as in the model of 160M weights": broken("window")},
    ),
    STUDY.claim(
        id="stream.text_recomputed",
        statement=f"For {SETUP}, a cache that keeps one or four first tokens, at positions within the cache, has a perplexity "
        "within 3% of that of a window with recomputation, in every run and on every stretch of positions from 64 to 1600.",
        judge=judge_recomputed,
        bounds=LOOKED,
        controls=BROKEN,
        rivals={"it breaks as a window does in the model of 160M weights": broken("1 sink", "4 sinks")},
    ),
    STUDY.claim(
        id="stream.text_stable",
        statement=f"For {SETUP}, the perplexity with one first token kept, over that of a window with recomputation on the same "
        "bytes, changes by less than 1% a decade of positions between 64 and 1600, in every run.",
        judge=judge_level,
        bounds=LOOKED,
        controls={"read by a dense cache": read_by("dense")},
        rivals={"it grows as with a dense cache": read_by("dense")},
    ),
    STUDY.claim(
        id="stream.text_dense",
        statement=f"For {SETUP}, a dense cache, which goes beyond the length of training, has at least 1.3 times the perplexity of "
        "a window with recomputation, in every run (positions 64 to 1600).",
        judge=judge_dense,
        bounds=LOOKED,
        controls={"read with one first token kept": read_by("1 sink", instead=("dense",))},
    ),
    STUDY.claim(
        id="stream.sink_count",
        statement=f"Do more first tokens help? Not here: for {SETUP}, two of them cost up to 1.1% in perplexity over one, four "
        "up to 1.9%, and eight, a quarter of the cache, up to 2.5%, in three sets of 3 runs (positions 64 to 1600).",
        expected="measured",
        judge=judge_count,
        controls={"read by a dense cache": read_by("dense", instead=MORE)},
        rivals={"they help as in Llama-2-7B": jd.swap(measured_loss=helped)},
        found={
            "perplexity, 2 sinks over 1, every run": (0.99, 1.02),
            "perplexity, 4 sinks over 1, every run": (0.99, 1.03),
            "perplexity, 8 sinks over 1, every run": (1.0, 1.04),
        },
    ),
    STUDY.claim(
        id="stream.positions",
        statement=f"For {SETUP} of which one is the first token's, positions of the text instead of those within the cache cost "
        "more than 1% in perplexity, in every run (positions 64 to 1600).",
        judge=judge_positions,
        bounds=LOOKED,
        controls={"the two are exchanged": jd.swap(measured_loss=exchanged)},
    ),
)
