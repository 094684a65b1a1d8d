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

__all__ = ["CLAIMS", "judge_breaks", "judge_emerges", "judge_holds", "judge_stable", "judge_token", "ratio"]

SHOWN = {"dense": "control", "window": "theory", "replaced": "third", "1 sink": "measured"}
LATE = slice(2, None)  # stretches: the first two lengths of training are left out
SHARES = xr.DataArray(np.diff(EDGES)[LATE] / (EDGES[-1] - EDGES[2]), dims="stretch")
SINK = 0.25  # least weight on token 0 at idle queries, mean over runs: uniform attention has 0.15
SAME = 0.02  # perplexities that differ by less are called equal
NEAR = 0.1  # the same, of networks with a wide MLP, of which one in 24 was off by 5%
CUT = 3  # tokens left out at the front of all sequences, so that none begins with token 0


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


def judge_emerges(ds: xr.Dataset) -> list[jd.Check]:
    """Weight on token 0 where nothing is to be copied, less that at triggers."""
    return [
        *trained(ds),
        jd.mean_within("weight on the first token, idle less at triggers", ds.idle - ds.copying, over="seed", low=SINK),
    ]


def judge_breaks(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexity of a window over that of a cache with one sink, where sequences begin with token 0 and where they never do."""
    jd.need(ds, cut=(0, CUT))
    with_sink, without = ds.sel(cut=0), ds.sel(cut=CUT)
    lost = ratio(with_sink, "window", "1 sink")
    return [
        *has_sink(with_sink),
        jd.gate("KL divergence elsewhere, without token 0, mean over runs", without.idle_lacks.mean("seed"), at_most=0.1),
        jd.gate("weight on the first token without token 0, mean over runs", without.idle.mean("seed"), at_most=SINK / 2),
        jd.share_within(
            "with a sink, share of runs with a perplexity, 0 + L over 1 + (L - 1), above 1.02",
            (lost > 1 + SAME).where(lost.notnull()),
            over="seed",
            low=0.5,
        ),
        jd.within(
            "perplexity without one, 0 + L over 1 + (L - 1), every run", ratio(without, "window", "1 sink"), 1 - SAME, 1 + SAME
        ),
    ]


def judge_token(ds: xr.Dataset) -> list[jd.Check]:
    """Nats lost with another token in the place of token 0 over those lost with none, beside the predicted share, run by run."""
    off = abs(ds.measured_share - ds.predicted_share)
    return [
        *has_sink(ds),
        jd.gate("perplexity, 0 + L over 1 + (L - 1), mean over runs", ratio(ds, "window", "1 sink").mean("seed"), at_least=1.1),
        jd.share_within(
            "share of runs within 0.2 of the predicted share of nats",
            (off < 0.2).where(off.notnull()),
            over="seed",
            low=0.5,
        ),
    ]


def judge_holds(ds: xr.Dataset) -> list[jd.Check]:
    """The same, run by run, in networks that have a sink and a wide MLP."""
    return [
        *has_sink(ds),
        jd.within("perplexity, 0 + L over 1 + (L - 1), every run", ratio(ds, "window", "1 sink"), 1 - NEAR, 1 + NEAR),
    ]


def judge_stable(ds: xr.Dataset) -> list[jd.Check]:
    """Slope of the perplexity with one sink, run by run."""
    return [
        *has_sink(ds),
        jd.within("slope of log-perplexity a decade of positions, every run", slope(ds, "1 sink"), -0.02, 0.02),
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


def uniform(ds: xr.Dataset) -> xr.Dataset:
    """A rival: heads look at the first token as much at triggers as elsewhere."""
    return ds.assign(copying=ds.idle)


def broken(ds: xr.Dataset) -> xr.Dataset:
    """A rival: a window loses what it loses in the published model of 160M weights."""
    lost = np.log(PRETRAINED["vanilla"]["window"] / PRETRAINED["vanilla"]["4 sinks"])
    return ds.assign(measured_lacks=ds.measured_lacks + lost * (ds.policy == "window"))


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A breach: what networks with token 0 lack is taken for that of those without, and the other way round."""
    return ds.assign(measured_lacks=ds.measured_lacks.copy(data=ds.measured_lacks.sel(cut=ds.cut.values[::-1]).values))


def placed(ds: xr.Dataset) -> xr.Dataset:
    """A breach: another token in the place of token 0 does what token 0 does."""
    return ds.assign(measured_share=xr.zeros_like(ds.measured_share))


def both_count(ds: xr.Dataset) -> xr.Dataset:
    """A rival: half of it is the token, half its place."""
    return ds.assign(predicted_share=xr.full_like(ds.predicted_share, 0.5))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position in the text, by policy; and the ratio of window and one sink over the weight of the sink."""
    left, right = fig.subplots(1, 2)
    runs = ds.isel({name: 0 for name in ("decay", "cut") if name in ds.dims}, drop=True)
    x = runs.place.values.reshape(-1, ds.sizes["stretch"])[0]
    for policy, color in SHOWN.items():
        y = np.exp(runs.measured_lacks.sel(policy=policy) + runs.entropy).transpose(..., "stretch")
        plotting.band(left, x, y, policy, plotting.COLORS[color])
    left.set(xscale="log", yscale="log", xlabel="position in the text", ylabel="perplexity")
    plotting.scatter(right, ds.idle, ratio(ds, "window", "1 sink"), label="runs", color="measured", log=False)
    right.set(xlabel="weight on token 0, idle", ylabel="perplexity, 0 + L over 1 + (L - 1)")


SETUP = (
    "one-block decoders with one head and rotary positions, trained by Adam for 2500 steps on sequences of 16 tokens of the "
    "Bigram-Backcopy task, which begin with token 0, and reading texts of 600 tokens of it through caches of 12 keys, with {} in "
    "the MLP"
)
NARROW, WIDE = SETUP.format("one unit"), SETUP.format("64 units")
LONG = {"steps": 10_000, "streams": 16}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Streamed),
    paper=jd.grid(Streamed, **LONG),
    seeds=16,
    paper_seeds=32,
    form="token",
    evidence="network",
    assumes=jd.below("copy_lacks", 0.1),  # nats at triggers: runs that have learned to copy
    source="arXiv:2309.17453, sections 3.1 and 4.1 (policies, in large language models); arXiv:2410.13835, section 2 (task)",
    plot=plot,
    caption="Left: perplexity over the position in the text, by policy, median and central 90% of the runs with a sink. Right: "
    "perplexity of a window over that with one sink, against the weight of the sink, one point a run.",
)
CUTS = {"cut": [0, CUT]}
LOOKED = jd.looked(at="9000:9024", confirmed="7104000:7104016")

TOKEN = STUDY.claim(
    id="stream.sink_token",
    statement=f"What makes a sink is here the token, not its place: for {NARROW}, another token in the place of token 0 loses as "
    "many nats as a window without either, to a fifth of them, in most runs that have learned to copy (positions 24 to 600).",
    judge=judge_token,
    seeds=24,
    bounds=jd.looked(at="9000:9024", confirmed="7104000:7104024"),
    controls={"what another token loses is read with token 0": placed},
    rivals={"half of it is the place": both_count},
)
BEYOND = TOKEN.as_printed(
    id="stream.linebreak_beyond",
    statement="What makes a sink is its place, so that any token kept there serves as well (as in Llama-2 and models like it): "
    f"for {NARROW}, another token in the place of token 0 loses less than a fifth of the nats that a window loses, in most runs "
    "that have learned to copy (positions 24 to 600).",
    form="place",
    source="arXiv:2309.17453, section 3.1 and table 1 (line breaks in the place of the first tokens, in large language models)",
)

CLAIMS = (
    STUDY.claim(
        id="stream.sink_emerges",
        statement=f"A sink emerges where the head has nothing to do: for {NARROW}, the weight on token 0 at tokens that are no "
        "triggers is on average at least 0.25 larger than at triggers.",
        judge=judge_emerges,
        source="arXiv:2410.13835, section 2; the mark is ours, from the size of the effect there",
        bounds=LOOKED,
        controls={"trained and read without token 0": {"cut": CUT}},
        rivals={"triggers make no difference": uniform},
    ),
    TOKEN,
    BEYOND,
    STUDY.claim(
        id="stream.window_breaks",
        statement=f"A window breaks where a sink is, and not where none is: for {NARROW}, the mean weight on token 0 where "
        "nothing is to be copied is above 0.25, and in most runs that have learned to copy a window that drops it has more than "
        "1.02 times the perplexity of a cache that keeps it; if the same networks are trained and read without token 0, their "
        "weight on the first token is below 0.125, and the two differ by less than 2% in every run (positions 24 to 600).",
        quick=jd.grid(Streamed, **CUTS),
        paper=jd.grid(Streamed, **CUTS, **LONG),
        judge=judge_breaks,
        bounds=LOOKED,
        controls={"networks with and without token 0 are exchanged": exchanged},
        rivals={"what is kept does not matter": alike, "windows break as in the model of 160M weights, always": broken},
    ),
    STUDY.claim(
        id="stream.stable",
        statement=f"For {NARROW}, the perplexity with token 0 kept, at positions within the cache, changes by less than 2% a "
        "decade of positions between 24 and 600, in every run that has learned the task.",
        judge=judge_stable,
        bounds=jd.looked(at="11000:11016", confirmed="7104000:7104016"),
        controls={"read by a dense cache": read_by("dense")},
        rivals={"it grows as with a dense cache": read_by("dense")},
    ),
    STUDY.claim(
        id="stream.window_holds",
        statement=f"A wide MLP can do without the sink: for {WIDE}, the mean weight on token 0 where nothing is to be copied is "
        "above 0.25 over 6 runs (uniform attention: 0.15), and the perplexity of a window is within 10% of that of a cache which "
        "keeps token 0, in every run (positions 24 to 600). With one unit it is not, see stream.window_breaks.",
        quick=jd.grid(Streamed, hidden=64),
        paper=jd.grid(Streamed, hidden=64, **LONG),
        seeds=6,
        judge=judge_holds,
        bounds=jd.looked(at="9000000:9000006", confirmed="9200000:9200006"),
        controls={"read by a dense cache": read_by("dense")},
        rivals={"windows break as in the model of 160M weights": broken},
    ),
)
