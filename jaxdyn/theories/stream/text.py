"""Caches in a small language model, which has no sink: policies against recomputation on texts of 50 lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn.cache.published import FOUR_HUNDRED_K, PRETRAINED
from jaxdyn.theories.sink.language import EDGES, Language, trial

LATE = slice(2, None)  # stretches: the first two lengths of training are left out
SHARES = xr.DataArray(np.diff(EDGES)[LATE] / (EDGES[-1] - EDGES[2]), dims="stretch")
MORE = ("2 sinks", "4 sinks", "8 sinks")
KEPT = ("window", "1 sink", *MORE)  # policies with positions within the cache
EQUAL = (0.98, 1.02)  # perplexities of networks without a sink, with a window over with first tokens
SAME = (0.97, 1.03)  # the same, over recomputation
LEVEL = 0.06  # largest deviation of this ratio from one, whatever is kept
FEW = ("1 sink", "4 sinks")
SLOPE = 0.04
LEARNED = "loss over that of the untrained network, every run"
WINDOW_OVER = {name: f"perplexity, window over {name}, mean" for name in FEW}
OVER_RECOMPUTED = {name: f"perplexity, {name} over recomputation, every run" for name in FEW}
DENSE = "perplexity, dense over recomputation, every run"
ABSOLUTE = "perplexity, absolute over in-cache, every run"
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


def over_untrained(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Loss with a policy, from two lengths of training on, over that of the network before training."""
    return np.log(perplexity(ds, policy)) / ds.validation.isel(step=0, drop=True)


def learned(ds: xr.Dataset, *policies: str) -> jd.Check:
    """Whether the network predicts well with these policies."""
    worst = np.maximum.reduce([over_untrained(ds, policy) for policy in policies])
    return jd.at_most(LEARNED, over_untrained(ds, policies[0]).copy(data=worst), 0.5)


def trained(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: the network has learned more than the frequencies of tokens, and no head has a sink."""
    return [
        jd.gate(
            "validation loss at the end over that at the start",
            ds.validation.isel(step=-1) / ds.validation.isel(step=0),
            at_most=0.6,
        ),
        jd.gate("share of heads with a sink at the end", ds.measured_sink.isel(step=-1), at_most=0.0),
    ]


def judge_window(ds: xr.Dataset) -> list[jd.Check]:
    """A window against one and four sinks, in networks without a sink, on average: in single runs training is chaotic."""
    return [
        *trained(ds),
        learned(ds, "window"),
        *(
            jd.mean_within(WINDOW_OVER[name], mean_ratio(ds, "window", name), over="seed", low=EQUAL[0], high=EQUAL[1])
            for name in FEW
        ),
    ]


def judge_recomputed(ds: xr.Dataset) -> list[jd.Check]:
    """One and four sinks against recomputation over the whole text; single stretches are in :func:`judge_level`."""
    return [
        *trained(ds),
        learned(ds, *FEW),
        *(jd.within(OVER_RECOMPUTED[name], mean_ratio(ds, name, "recomputed"), *SAME) for name in FEW),
    ]


def slope(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Slope of the logarithm of the ratio to recomputation in the logarithm of the position, per decade, by least squares."""
    x = np.log10(ds.place.isel(stretch=LATE))
    x, y = x - x.mean("stretch"), np.log(over_recomputed(ds, policy))
    return (x * y).sum("stretch", skipna=False) / (x**2).sum("stretch")


def judge_level(ds: xr.Dataset) -> list[jd.Check]:
    """Level and slope in the position of the perplexity over recomputation's on the same tokens, however many tokens are kept."""
    checks = [*trained(ds), learned(ds, *KEPT)]
    for name in KEPT:
        ratio = over_recomputed(ds, name)
        checks += [
            jd.within(f"perplexity, {name} over recomputation, every run and stretch", ratio, 1 - LEVEL, 1 + LEVEL),
            jd.within(f"slope of its logarithm per decade of positions, {name}, every run", slope(ds, name), -SLOPE, SLOPE),
        ]
    return checks


def judge_dense(ds: xr.Dataset) -> list[jd.Check]:
    """A dense cache beyond the length of training against recomputation."""
    return [
        *trained(ds),
        jd.at_least(DENSE, mean_ratio(ds, "dense", "recomputed"), 2.0),
    ]


def judge_positions(ds: xr.Dataset) -> list[jd.Check]:
    """Positions of the text against positions within the cache, both with one sink."""
    return [
        *trained(ds),
        jd.at_least(ABSOLUTE, mean_ratio(ds, "absolute", "1 sink"), 1.05),
    ]


def judge_count(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Two, four and eight first tokens against one."""
    return [
        *trained(ds),
        *(jd.mean_reading(f"perplexity, {name} over 1", mean_ratio(ds, name, "1 sink"), over="seed") for name in MORE),
    ]


def read_by(policy: str, *, instead: tuple[str, ...] = ("1 sink", "4 sinks")) -> Callable[[xr.Dataset], xr.Dataset]:
    """What is named as some policies is read with another one."""

    def changed(ds: xr.Dataset) -> xr.DataArray:
        return xr.where(ds.policy.isin(instead), ds.measured_loss.sel(policy=policy, drop=True), ds.measured_loss)

    return jd.swap(measured_loss=changed)


# Nothing is learned: losses stay those of the untrained network.
STILL = {LEARNED: 1.0}


# A policy loses what a window loses in the published model of 160M weights.
PAPER = PRETRAINED["vanilla"]
WINDOWS_BREAK = {check: PAPER["window"] / PAPER[name] for name, check in WINDOW_OVER.items()}
SINKS_BREAK = dict.fromkeys(OVER_RECOMPUTED.values(), PAPER["window"] / PAPER["4 sinks"])


# More first tokens help as much as in the published figures of Llama-2-7B.
LLAMA = FOUR_HUNDRED_K["Llama-2-7B"]
HELPED = {f"perplexity, {name} over 1": LLAMA[name] / LLAMA["1 sink"] for name in MORE}


def exchanged(ds: xr.Dataset) -> xr.DataArray:
    """Losses if one sink is read at positions of the text, and what is named so, within the cache."""
    inside, outside = ds.measured_loss.sel(policy="1 sink", drop=True), ds.measured_loss.sel(policy="absolute", drop=True)
    return xr.where(ds.policy == "1 sink", outside, xr.where(ds.policy == "absolute", inside, ds.measured_loss))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position in the text, by policy, and over that of recomputation."""
    left, right = fig.subplots(1, 2)
    x = ds.place.values.reshape(-1, ds.sizes["stretch"])[0]
    for policy, color in SHOWN.items():
        one, again = (ds.measured_loss.sel(policy=name).transpose(..., "stretch") for name in (policy, "recomputed"))
        plotting.band(left, x, np.exp(one), policy, plotting.COLORS[color])
        plotting.band(right, x, np.exp(one - again), "", plotting.COLORS[color])
    left.set(xscale="log", yscale="log", xlabel="position in the text", ylabel="perplexity")
    right.set(xscale="log", xlabel="position in the text", ylabel="perplexity over recomputation's")


STUDY = jd.Study(
    tested="Decoders of width {width} with {layers} layers of {heads} heads and rotary positions, trained by Adam for {steps} "
    "steps on sequences of {length} bytes of the Python manual, read {streams} held-out texts of 50 such lengths through caches "
    "of as many keys; {seeds} seeds. Losses count from two lengths on.",
    trial=trial,
    quick=jd.grid(Language),
    paper=jd.grid(Language, width=96, hidden=256, layers=3, length=64, batch=16, steps=4000, streams=16),
    seeds=6,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2309.17453, figures 1 and 3, section 3.2 (large language models); the size is ours",
    plot=plot,
    caption="Perplexity over the position in the text by policy, and over that of a window with recomputation: median and "
    "central 90% of the runs.",
)
TUNED = jd.tuned(on="0:6", confirmed_on="4100:4106")
BROKEN = {"a dense cache, beyond the length of training": read_by("dense"), "positions of the text": read_by("absolute")}

CLAIMS = (
    STUDY.claim(
        id="stream.text_window",
        title="Where no attention sink has emerged, a plain window breaks nothing",
        statement="In a decoder of two layers of width 32, trained for 800 steps on sequences cut out of a text, with rotary "
        "positions, none of whose heads has a sink (a mean weight above 0.3 on the first token), the perplexity of a window of "
        "the last keys is within 2% of that of a cache that keeps one or four first tokens as well, on average over runs, and "
        "its loss is at most half of that of the untrained network, in every run.",
        talks=("practical:stream-window-13b",),
        judge=judge_window,
        max_seeds=24,
        bounds=TUNED,
        controls={"read by a dense cache": read_by("dense", instead=("window",))},
        rivals={"nothing is learned": jd.off(STILL), "windows break as in the model of 160M weights": WINDOWS_BREAK},
    ),
    STUDY.claim(
        id="stream.text_recomputed",
        title="A streaming cache predicts as well as encoding each window anew",
        statement="In a decoder of two layers of width 32, trained for 800 steps on sequences cut out of a text, with rotary "
        "positions and without a sink, a cache that keeps one or four first tokens next to the last ones, at positions within "
        "the cache, has over the whole of a long text a perplexity within 3% of that of encoding the window anew for every "
        "token, in every run, and a loss of at most half of that of the untrained network. (On single stretches: "
        "`stream.text_stable`.)",
        talks=("practical:stream-four-tokens-13b", "practical:stream-figure-policies"),
        judge=judge_recomputed,
        bounds=TUNED,
        controls=BROKEN,
        rivals={"nothing is learned": jd.off(STILL), "it breaks as a window does in the model of 160M weights": SINKS_BREAK},
    ),
    STUDY.claim(
        id="stream.text_stable",
        title="Over long texts caches stay as good as encoding the window anew",
        statement="In a decoder of two layers of width 32, trained for 800 steps on sequences cut out of a text, with rotary "
        "positions and without a sink, caches that keep 0, 1, 2, 4 or 8 first tokens next to the last ones, at positions within "
        "the cache, all have a perplexity within 6% of that of encoding the window anew, in every run and on every stretch of "
        "the text from 2 to 50 lengths of training; the ratio changes by less than 4% per decade of positions, and the loss is "
        "at most half of that of the untrained network.",
        talks=("practical:stream-figure-stable",),
        judge=judge_level,
        bounds=TUNED,
        controls={"read by a dense cache": read_by("dense", instead=KEPT)},
        rivals={"nothing is learned": jd.off(STILL)},
    ),
    STUDY.claim(
        id="stream.text_dense",
        title="A dense cache breaks beyond the length of training",
        statement="In a decoder of two layers of width 32, trained for 800 steps on sequences cut out of a text, with rotary "
        "positions and without a sink, a dense cache, which goes on to 50 times the length of training, has at least twice the "
        "perplexity of encoding a window of that length anew for each token, in every run.",
        talks=("practical:stream-figure-policies",),
        judge=judge_dense,
        bounds=TUNED,
        controls={"read with one first token kept": read_by("1 sink", instead=("dense",))},
        rivals={"it does not matter what is kept": jd.off({DENSE: 1.0})},
    ),
    STUDY.claim(
        id="stream.sink_count",
        title="Does it help to keep more first tokens in a model without a sink?",
        statement="Does it help to keep more first tokens? The reading is the perplexity with two, four and eight of them over "
        "that with one, in caches of equal size, in a decoder of two layers of width 32, trained on sequences cut out of a text, "
        "without a sink. (All their intervals contain 1.)",
        talks=("practical:stream-pretraining-vanilla",),
        expected="measured",
        judge=judge_count,
        controls={"read by a dense cache": read_by("dense", instead=MORE)},
        rivals={"they help as in Llama-2-7B": HELPED},
        excused={
            "opponents: nothing": "It says itself that more first tokens are not told apart from one; the help in Llama-2-7B is."
        },
        recorded={
            "perplexity, 2 sinks over 1": (0.997, 1.001, 1.01),
            "perplexity, 4 sinks over 1": (0.997, 1.003, 1.01),
            "perplexity, 8 sinks over 1": (0.994, 1.008, 1.03),
        },
    ),
    STUDY.claim(
        id="stream.positions",
        title="With a first token kept, positions in the text cost perplexity",
        statement="In a decoder of two layers of width 32, trained for 800 steps on sequences cut out of a text, with rotary "
        "positions and without a sink, which reads texts of 50 times the length of training through a cache of that length that "
        "keeps the first token, positions of the text in place of those within the cache cost at least 5% in perplexity, in "
        "every run.",
        talks=("practical:stream-position-rolling",),
        judge=judge_positions,
        bounds=TUNED,
        controls={"the two are exchanged": jd.Control(jd.swap(measured_loss=exchanged), breaks="in place of")},
        rivals={"positions do not matter": jd.off({ABSOLUTE: 1.0})},
    ),
)
