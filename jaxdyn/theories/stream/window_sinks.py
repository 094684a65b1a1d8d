r"""Caches in networks with and without a sink, trained on the Bigram-Backcopy task, on texts of 50 lengths of a cache.

Sequences of training begin with token 0, which does not return; so do the texts. The head may put its idle weight on it, and does
so less with weight decay. With the front of all sequences cut off, no network ever sees token 0.

The law of the task is known. So the cross-entropy of every position is taken in expectation over the next token, and what is
recorded is what the network lacks, :math:`\mathrm{KL}(\pi(\cdot | x_{t-1}, x_t) \,\|\, p_t)`, next to the entropy of the law: the
logarithm of the perplexity is their sum. Caches are those of :mod:`jaxdyn.nn.cache`, decoded token by token.
The caches are shorter than the sequences of training: at the largest distance in these, training has no key but that of token 0,
and a window of that length would be judged where the network was never trained.
Letters: L keys of a cache, S sinks, T tokens of a text, V of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import backcopy
from jaxdyn.nn import cache
from jaxdyn.nn.cache.published import PRETRAINED
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.sink.language import EDGES, places, stretches
from jaxdyn.theories.stream.streamed import (
    FIRST,
    HELD_OUT,
    LATE,
    SHARES,
    Streamed,
    lacking,
    plot,
    ratio,
    sample_texts,
    slope,
    trained,
)

SINKS = {"window": 0, "1 sink": 1, "replaced": 1}  # by name of a policy
POLICIES = (*SINKS, "dense")
FORMS = ("token", "place")  # what makes a sink


def looked(s: Streamed, law: backcopy.Law, params: PyTree, tokens: Int[Array, "b n"]) -> dict[str, Array]:
    """Weight on the first token of sequences of the training's length, by layer: where the head is idle, and where it copies."""
    logits, weights = apply(s.shape, params, tokens, observe=("attention",))
    first = weights["attention"][:, :, 0, :, 0]  # [layer, b, n]
    late, copy = jnp.arange(s.length) >= FIRST, backcopy.due(law, tokens)

    def mean(values: Float[Array, "*l b n"], where: Array) -> Array:
        chosen = where & late
        return jnp.sum(jnp.where(chosen, values, 0), (-2, -1)) / jnp.maximum(jnp.sum(chosen), 1).astype(values.dtype)

    missing = lacking(law, tokens, logits)
    return {
        "idle": jnp.max(mean(first, ~copy)),
        "copying": jnp.max(mean(first, copy)),
        "sink": jnp.mean((jnp.mean(first[..., 1:], (-2, -1)) > 0.3).astype(first.dtype)),
        "copy_lacks": mean(missing, copy),
        "idle_lacks": mean(missing, ~copy),
    }


def read(s: Streamed, law: backcopy.Law, params: PyTree, tokens: Int[Array, "b T"]) -> Float[Array, "policy b T"]:
    """What the network lacks at every position of the texts, with every policy."""

    def cached(sinks: Int[Array, ""], texts: Int[Array, "b T"]) -> Float[Array, "b T"]:
        policy = cache.Policy(kind="streaming", size=s.keys, sinks=sinks)
        return lacking(law, tokens, jax.vmap(lambda one: cache.decode(s.shape, params, policy, one)[1])(texts))

    replaced = tokens.at[:, 0].set(s.vocabulary - 1)
    texts = jnp.stack([replaced if name == "replaced" else tokens for name in SINKS])
    within = jax.vmap(cached)(jnp.asarray(list(SINKS.values()), jnp.int32), texts)
    dense = lacking(law, tokens, jax.lax.map(lambda one: apply(s.shape, params, one[None])[0], tokens))
    return jnp.concatenate([within, dense[None]])


def trial(s: Streamed, key: PRNGKeyArray) -> jd.Observables:
    """Train on short sequences, look at the head, and read long texts with every policy.

    The KL divergence is averaged over the texts and over stretches of them between
    :data:`~jaxdyn.theories.sink.language.EDGES`; the entropy is that of what comes after two lengths of training.
    Predicted is the share of the nats lost with a window that are lost with another token in the place of token 0: all, if the
    token makes the sink, and none, if its place does.
    """
    # training
    k_law, k_init, k_data, k_held = jax.random.split(key, 4)
    law = backcopy.law(k_law, s.vocabulary, s.triggers, concentration=1.0, dtype=s.dtype)
    params = trained(s, law, k_init, k_data)
    # the head, and long texts with every policy
    k_held, k_text = jax.random.split(k_held)
    observed = looked(s, law, params, sample_texts(law, s.cut, k_held, HELD_OUT, s.length))
    tokens = sample_texts(law, s.cut, k_text, s.streams, EDGES[-1] * s.keys)
    missing = jnp.mean(read(s, law, params, tokens), 1)
    # what is lost with another token in the place of token 0
    late = dict(zip(POLICIES, jnp.mean(missing[:, 2 * s.keys :], 1), strict=True))
    share = (late["replaced"] - late["1 sink"]) / (late["window"] - late["1 sink"])
    floor = jnp.mean(backcopy.entropies(law)[tokens[:, 2 * s.keys :]])
    return jd.observables(
        predicted={"share": jd.named(jnp.asarray([1.0, 0.0], s.dtype), "form")},
        measured={"lacks": jd.named(stretches(missing, s.keys), "policy stretch"), "share": share},
        recorded={n: x for n, x in observed.items() if n != "copy_lacks"}
        | {"entropy": floor, "place": jd.named(places(s.keys, s.dtype), "stretch")},
        assumed={"copy_lacks": observed["copy_lacks"]},
        coords={"policy": POLICIES, "form": FORMS},
        status=train.finite_status((params, missing)),
    )


MORE = 0.6  # weight at idle queries minus at triggers, mean over runs
LEVEL = 0.05  # nats per token that the network may lack
SINK = 0.25  # least weight on token 0 at idle queries, mean over runs: uniform attention has 0.15
LOSES = 0.02  # share of the perplexity that a window loses at least, in a run in which it breaks
SAME = 0.002  # perplexities that differ by less are called equal
NEAR = 0.1  # the same, of networks with a wide MLP, of which one in 24 was off by 5%
CUT = 3  # tokens left out at the front of all sequences, so that none begins with token 0
EMERGED = "weight on the first token, idle minus at triggers"  # names of checks
BREAKS = "with a sink, share of runs with a perplexity, 0 + L over 1 + (L - 1), above 1.02"
UNBROKEN = "perplexity without one, 0 + L over 1 + (L - 1), every run"
LACKS = "KL divergence of the network from the law, nats per token, on every stretch"
FLAT = "slope of log-perplexity per decade of positions, every run"
SHARE = "share of nats lost with another token in the place of token 0, minus the predicted share"
THIRD = 0.35  # of the nats lost with a window
HOLDS = "perplexity, 0 + L over 1 + (L - 1), every run"


def trained_gates(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: the law of the task is learned, on average over runs; that copies are, is assumed of each run."""
    return [jd.gate("KL divergence elsewhere, nats, mean over runs", ds.idle_lacks.mean("seed"), at_most=0.1)]


def has_sink(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: trained, and a sink."""
    return [*trained_gates(ds), jd.gate("weight on token 0 at idle queries, mean over runs", ds.idle.mean("seed"), at_least=SINK)]


def judge_emerges(ds: xr.Dataset) -> list[jd.Check]:
    """Weight on token 0 where nothing is to be copied, minus that at triggers."""
    return [
        *trained_gates(ds),
        jd.mean_within(EMERGED, ds.idle - ds.copying, over="seed", low=MORE),
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
        jd.share_within(BREAKS, (lost > 1 + LOSES).where(lost.notnull()), over="seed", low=0.5),
        jd.within(UNBROKEN, ratio(without, "window", "1 sink"), 1 - SAME, 1 + SAME),
    ]


def judge_token(ds: xr.Dataset) -> list[jd.Check]:
    """Nats lost with another token in the place of token 0 over those lost with none, next to the predicted share, run by run."""
    return [
        *has_sink(ds),
        jd.gate("perplexity, 0 + L over 1 + (L - 1), mean over runs", ratio(ds, "window", "1 sink").mean("seed"), at_least=1.1),
        jd.mean_within(SHARE, ds.measured_share - ds.predicted_share, over="seed", low=-THIRD, high=THIRD),
    ]


def judge_holds(ds: xr.Dataset) -> list[jd.Check]:
    """The same, run by run, in networks that have a sink and a wide MLP, and what they lack with a window."""
    return [
        *has_sink(ds),
        jd.within(HOLDS, ratio(ds, "window", "1 sink"), 1 - NEAR, 1 + NEAR),
        level(ds, "window"),
    ]


def level(ds: xr.Dataset, policy: str) -> jd.Check:
    """What the network lacks with a policy, on each stretch from two lengths of training on, mean over runs."""
    return jd.mean_within(LACKS, ds.measured_lacks.sel(policy=policy, drop=True).isel(stretch=LATE), over="seed", high=LEVEL)


def judge_stable(ds: xr.Dataset) -> list[jd.Check]:
    """Slope of the perplexity with one sink, run by run, and its level."""
    return [*has_sink(ds), jd.within(FLAT, slope(ds, "1 sink"), -0.02, 0.02), level(ds, "1 sink")]


def read_by(policy: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """What is called one sink is read with another policy."""

    def changed(ds: xr.Dataset) -> xr.DataArray:
        return xr.where(ds.policy == "1 sink", ds.measured_lacks.sel(policy=policy, drop=True), ds.measured_lacks)

    return jd.swap(measured_lacks=changed)


def dense_as_window(ds: xr.Dataset) -> xr.DataArray:
    """What is called a window is read with a dense cache."""
    return xr.where(ds.policy == "window", ds.measured_lacks.sel(policy="dense", drop=True), ds.measured_lacks)


# Nothing is learned: every token is as likely as any other.
CHANCE = {LACKS: lambda ds: float((np.log(Streamed.vocabulary) - ds.entropy).mean())}


# A window loses what it loses in the published model of 160M weights.
LOST = PRETRAINED["vanilla"]["window"] / PRETRAINED["vanilla"]["1 sink"]


# What networks with token 0 lack is taken for that of those without, and the other way round.
EXCHANGED = jd.swap(measured_lacks=lambda ds: ds.measured_lacks.copy(data=ds.measured_lacks.sel(cut=ds.cut.values[::-1]).values))


def dense_share(ds: xr.Dataset) -> xr.DataArray:
    """Share of the nats lost with a window that are lost with a dense cache, which keeps token 0."""
    late = (ds.measured_lacks.isel(stretch=LATE) * SHARES).sum("stretch", skipna=False)
    dense, window, sink = (late.sel(policy=name, drop=True) for name in ("dense", "window", "1 sink"))
    return (dense - sink) / (window - sink)


TASK = (
    "one head and rotary positions, trained by Adam for {steps} steps of {batch} sequences at the rate {lr} on sequences of "
    "{length} tokens of the Bigram-Backcopy task ({vocabulary} tokens, {triggers} of them triggers), which begin with token 0, and "
    "reading texts of 600 tokens of it through caches of {keys} keys; {seeds} seeds. Runs count if they have learned to copy, and "
    "perplexities from the 24th token on."
)
LONG = {"steps": 10_000, "streams": 16}
STEPS = "trained for 2,500 steps (10,000 at paper scale) on the Bigram-Backcopy task"
SINGLE = f"of width 32 with softmax attention and a single unit in the MLP, {STEPS}"
STUDY = jd.Study(
    tested="One-block decoders (units in the MLP: {hidden}) with " + TASK,
    trial=trial,
    quick=jd.grid(Streamed),
    paper=jd.grid(Streamed, **LONG),
    seeds=16,
    paper_seeds=32,
    form="token",
    evidence="network",
    assumes=(jd.below("copy_lacks", 0.1),),  # nats at triggers: runs that have learned to copy
    source="arXiv:2309.17453, sections 3.1 and 4.1 (policies, in large language models); arXiv:2410.13835, section 2 (task)",
    plot=plot,
    caption="Left: perplexity over the position in the text, by policy, median and central 90% of the runs with a sink. Right: "
    "perplexity of a window over that with one sink, against the weight of the sink, one point per run.",
)
CUTS = {"cut": [0, CUT]}
TUNED = jd.tuned(on="0:16", confirmed_on="4100:4116")

TOKEN = STUDY.claim(
    id="stream.sink_token",
    title="In small decoders a sink is made by the first token, not by its place",
    statement=f"In two-block decoders {SINGLE} with a first token that occurs nowhere else, the sink is made by that token and "
    "not by its place: with one other token in the first place, kept in the cache, as many nats are lost as "
    "by a window that "
    "keeps neither, to 35% of them on average over the runs that have learned to copy.",
    talks=("practical:sink-position", "practical:stream-linebreak-13b"),
    tested="Two-block decoders (units in the MLP: {hidden}) with " + TASK,
    quick=jd.grid(Streamed, layers=2),
    paper=jd.grid(Streamed, layers=2, **LONG),
    judge=judge_token,
    seeds=24,
    bounds=jd.tuned(on="9000:9012", confirmed_on="0:24"),
    controls={"read by a dense cache, with token 0": jd.swap(measured_share=dense_share)},
    rivals={"the token does not matter, any one serves there": jd.off(predicted_share=0.0)},
)
BEYOND = TOKEN.as_printed(
    id="stream.linebreak_beyond",
    title="Any token serves as a sink in the first place",
    statement="What makes a sink is its place, so that any token kept there serves as well, as line breaks do in Llama-2: in a "
    "two-block decoder trained with a first token that occurs nowhere else, another token in the first place loses at most 35% of "
    "the nats that a window loses, on average over runs.",
    form="place",
    source="arXiv:2309.17453, section 3.1 and table 1 (line breaks in the place of the first tokens, in large language models)",
    talks=("practical:sink-position", "practical:stream-table-linebreak", "practical:stream-linebreak-13b"),
)

CLAIMS = (
    STUDY.claim(
        id="stream.sink_emerges",
        title="A sink emerges where the head has nothing to do",
        statement=f"In one-block decoders {SINGLE}, a sink emerges where the head has nothing to do: its weight on the first "
        "token is larger at tokens after which nothing is to be copied than at triggers, by at least 0.6 on average over the runs "
        "that have learned to copy.",
        judge=judge_emerges,
        source="arXiv:2410.13835, section 2; the mark is ours, from the size of the effect there",
        talks=("practical:sink-why-sum",),
        bounds=TUNED,
        controls={"trained and read without token 0": {"cut": CUT}},
        rivals={"the head looks at the first token as much at triggers": jd.off({EMERGED: 0.0})},
    ),
    TOKEN,
    BEYOND,
    STUDY.claim(
        id="stream.window_breaks",
        title="A window of keys breaks where a sink is, and not where none is",
        statement=f"In one-block decoders {SINGLE}, a window breaks where a sink is, and not where none is: in most networks "
        "trained with a first token that occurs nowhere else, a window that drops it has more than 1.02 times the perplexity of a "
        "cache that keeps it; in the same networks trained and read without that token the two perplexities differ by less than "
        "0.2%, in every run that has learned to copy.",
        talks=("practical:stream-window-13b", "practical:stream-figure-policies"),
        quick=jd.grid(Streamed, **CUTS),
        paper=jd.grid(Streamed, **CUTS, **LONG),
        judge=judge_breaks,
        bounds=jd.tuned(on="4100:4116", confirmed_on="4200:4216"),
        max_seeds=64,
        controls={"networks with and without token 0 are exchanged": EXCHANGED},
        rivals={
            "it does not matter what is kept": jd.off({BREAKS: 0.0}),
            "windows always break, as in the model of 160M weights": {UNBROKEN: LOST},
        },
    ),
    STUDY.claim(
        id="stream.stable",
        title="With the sink kept, perplexity stays low over long texts",
        statement=f"With the first token kept, at positions within the cache, one-block decoders {SINGLE}, whose mean weight on "
        "the first token at idle queries is above 0.25, lack at most 0.05 nats per token of the law of the text on every "
        "stretch from two lengths of the cache to 50, on average over the runs that have learned to copy, and in each of these "
        "their perplexity changes by less than 2% per decade of positions.",
        talks=("practical:stream-figure-stable",),
        judge=judge_stable,
        bounds=TUNED,
        controls={"read by a dense cache": read_by("dense"), "the sink is dropped": read_by("window")},
        rivals={"nothing is learned": jd.off(CHANCE)},
    ),
    STUDY.claim(
        id="stream.window_holds",
        title="With 64 units in the MLP, a window holds in spite of a sink",
        statement="A wide MLP can do without the sink: in one-block decoders of softmax attention, width 32, with 64 units in "
        f"the MLP, {STEPS}, whose mean weight on the first token at idle queries is above 0.25, the perplexity of a window is "
        "within 10% of that of a cache that keeps the first token, in every run that has learned to copy, and with the window "
        "they lack at most 0.05 nats per token of the law of the text on every stretch, on average over these runs.",
        talks=("practical:stream-window-13b",),
        quick=jd.grid(Streamed, hidden=64),
        paper=jd.grid(Streamed, hidden=64, **LONG),
        seeds=6,
        max_seeds=24,
        judge=judge_holds,
        bounds=jd.tuned(on="0:6", confirmed_on="4100:4106"),
        controls={"read by a dense cache": jd.swap(measured_lacks=dense_as_window)},
        rivals={"nothing is learned": jd.off(CHANCE), "windows break as in the model of 160M weights": {HOLDS: LOST}},
    ),
)
