r"""Networks trained plainly, with a zero sink and with a sink token, each read with 0, 1, 2 and 4 first tokens kept.

The three kinds start from the same weights and are trained on the same sequences of the Bigram-Backcopy task, which begin with
token 0. A zero sink is a 1 in the denominator of the attention weights, a logit 0 that is not trained. A sink token is a trained
embedding before every sequence and text, one token ahead of token 0; like any first token, a cache keeps it or not. All kinds have
a row of the embedding for it, which two of them never read.
Letters: L keys of a cache, V tokens of the task, T tokens of a text.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.data import backcopy
from jaxdyn.nn import Transformer, cache
from jaxdyn.nn.cache.published import FOUR_HUNDRED_K, PRETRAINED
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.sink.language import EDGES, stretches
from jaxdyn.theories.stream.streamed import FIRST, HELD_OUT, Streamed, fitted, lacking, ratio, sample_texts, started

KINDS = ("vanilla", "zero sink", "sink token")
SINKS = {"window": 0, "1 sink": 1, "2 sinks": 2, "4 sinks": 4}  # first tokens kept, by name of a policy
NONE = -1e9  # logit of a sink that takes no weight


@jd.setting
class Pretrained(Streamed):
    """A network, its training and the texts that it reads, to the fields of which its kind is added, one of :data:`KINDS`."""

    kind: jd.Code = jd.code(*KINDS)  # of sink in training: none, a 1 in the denominator, a trained token
    attention: str = "sink_bias"
    lr: jd.Swept = jd.field(4e-2, above=0)
    steps: int = jd.field(600, at_least=20)

    @property
    def shape(self) -> Transformer:
        """The decoder, with one token more than the task: the sink token."""
        sizes = {name: getattr(self, name) for name in ("layers", "width", "hidden", "attention", "dtype")}
        return Transformer(vocabulary=self.vocabulary + 1, heads=1, std=0.2, **sizes)


def begun(s: Pretrained, tokens: Int[Array, "b n"]) -> Int[Array, "b n"]:
    """The sequences, after the sink token if the network has one; the last token then falls off."""
    after = jnp.concatenate([jnp.full_like(tokens[:, :1], s.vocabulary), tokens[:, :-1]], 1)
    return jnp.where(s.kind == "sink token", after, tokens)


def fixed(s: Pretrained, params: PyTree) -> PyTree:
    """The weights with the logit of the sink in the formula: 0 with a zero sink, and else none; it is not trained."""
    logit = jnp.where(s.kind == "zero sink", 0.0, NONE).astype(s.dtype)
    return params | {"blocks": params["blocks"] | {"sink": jnp.full_like(params["blocks"]["sink"], logit)}}


def trained(s: Pretrained, law: backcopy.Law, k_init: PRNGKeyArray, k_data: PRNGKeyArray) -> PyTree:
    """Weights after training; all sequences are sampled ahead."""

    def logits(params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, "b n V"]:
        return apply(s.shape, fixed(s, params), tokens)

    def batch(i: Int[Array, ""]) -> Int[Array, "b n1"]:
        return begun(s, sample_texts(law, s.cut, jax.random.fold_in(k_data, i), s.batch, s.length + 1))

    return fixed(s, fitted(s, started(s, k_init), logits, jax.vmap(batch)(jnp.arange(s.steps))))


def looked(s: Pretrained, law: backcopy.Law, params: PyTree, tokens: Int[Array, "b n"]) -> dict[str, Array]:
    """Weights on the first two tokens at idle queries, and what the network lacks, on sequences of the training's length."""
    logits, seen = apply(s.shape, params, tokens, observe=("attention",))
    late, copy = jnp.arange(s.length) >= FIRST, law.triggers[jnp.minimum(tokens, s.vocabulary - 1)]

    def mean(values: Float[Array, "b n"], where: Bool[Array, "b n"]) -> Float[Array, ""]:
        return jnp.sum(jnp.where(where & late, values, 0)) / jnp.maximum(jnp.sum(where & late), 1).astype(values.dtype)

    missing = lacking(law, tokens, logits[..., :-1])
    return {
        "idle": jnp.stack([mean(seen["attention"][0, :, 0, :, i], ~copy) for i in (0, 1)]),
        "copy_lacks": mean(missing, copy),
        "idle_lacks": mean(missing, ~copy),
    }


def trial(s: Pretrained, key: PRNGKeyArray) -> jd.Observables:
    """Train on short sequences, look at the head, and read long texts with every number of first tokens kept."""
    # training
    k_law, k_init, k_data, k_held, k_text = jax.random.split(key, 5)
    law = backcopy.law(k_law, s.vocabulary, s.triggers, concentration=1.0, dtype=s.dtype)
    params = trained(s, law, k_init, k_data)
    observed = looked(s, law, params, begun(s, sample_texts(law, s.cut, k_held, HELD_OUT, s.length)))
    # long texts
    tokens = begun(s, sample_texts(law, s.cut, k_text, s.streams, EDGES[-1] * s.keys))

    def read(sinks: Int[Array, ""]) -> Float[Array, " T"]:
        policy = cache.Policy(kind="streaming", size=s.keys, sinks=sinks)
        logits = jax.vmap(lambda one: cache.decode(s.shape, params, policy, one)[1])(tokens)
        return jnp.mean(lacking(law, tokens, logits[..., :-1]), 0)

    missing = jax.vmap(read)(jnp.asarray(list(SINKS.values()), jnp.int32))
    return jd.observables(
        predicted={},
        measured={"lacks": jd.named(stretches(missing, s.keys), "policy stretch")},
        recorded={
            "idle": jd.named(observed["idle"], "first"),
            "idle_lacks": observed["idle_lacks"],
            "entropy": jnp.mean(backcopy.entropies(law)[tokens[:, 2 * s.keys :]]),
        },
        assumed={"copy_lacks": observed["copy_lacks"]},
        coords={"policy": tuple(SINKS), "first": (0, 1)},
        status=train.finite_status((params, missing)),
    )


LOSES = 0.02  # share of the perplexity that a window loses at least, in a run in which it breaks
SAME = 0.005  # perplexities that differ by less are called equal
PLAIN = KINDS[:2]  # kinds whose first token is token 0
WINDOW = {kind: f"nats per token lost by a window, {kind}" for kind in KINDS}
ONE = "sink token, share of runs with a perplexity, one first token over four, above 1.02"
TWO = "nats per token lost with two first tokens, mean of all kinds"
BREAKS = {kind: f"{kind}, share of runs with a perplexity, window over four first tokens, above 1.02" for kind in PLAIN}
EQUAL = {kind: f"perplexity, one first token over four, {kind}, every run" for kind in PLAIN}


def lost(ds: xr.Dataset, kind: str, policy: str) -> stats.Labelled:
    """Nats per token that a kind of network loses with a policy, over what it lacks with four first tokens kept."""
    return np.log(ratio(ds.sel(kind=kind, drop=True), policy, "4 sinks"))


def breaks(nats: xr.DataArray) -> xr.DataArray:
    """Whether a run loses more than :data:`LOSES` of its perplexity; undecided in runs that do not count."""
    return (nats > np.log1p(LOSES)).where(nats.notnull())


def trained_gate(ds: xr.Dataset) -> jd.Check:
    """Gate: the law of the task is learned, on average over runs; that copies are, is assumed of each run."""
    return jd.gate("KL divergence elsewhere, nats, mean over runs", ds.idle_lacks.mean("seed"), at_most=0.1)


def judge(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Nats lost with 0, 1 and 2 first tokens kept, over 4, by kind of network."""
    jd.need(ds, kind=KINDS)
    two = sum(lost(ds, kind, "2 sinks") for kind in KINDS) / len(KINDS)
    return [
        trained_gate(ds),
        *(jd.mean_reading(WINDOW[kind], lost(ds, kind, "window"), over="seed") for kind in KINDS),
        jd.share_reading(ONE, breaks(lost(ds, "sink token", "1 sink")), over="seed"),
        jd.mean_reading(TWO, two, over="seed"),
    ]


def judge_needed(ds: xr.Dataset) -> list[jd.Check]:
    """What a window loses, and one first token against four, with and without a zero sink."""
    jd.need(ds, kind=PLAIN)
    return [
        trained_gate(ds),
        *(jd.share_within(BREAKS[kind], breaks(lost(ds, kind, "window")), over="seed", low=0.5) for kind in PLAIN),
        *(jd.within(EQUAL[kind], np.exp(lost(ds, kind, "1 sink")), 1 - SAME, 1 + SAME) for kind in PLAIN),
    ]


def dropped(ds: xr.Dataset) -> xr.DataArray:
    """What is called one first token is read by a window, which keeps none."""
    return xr.where(ds.policy == "1 sink", ds.measured_lacks.sel(policy="window", drop=True), ds.measured_lacks)


def published(kind: str, policy: str) -> float:
    """Nats lost according to the published table, of networks of 160M weights."""
    return float(np.log(PRETRAINED[kind][policy] / PRETRAINED[kind]["4 sinks"]))


LLAMA = FOUR_HUNDRED_K["Llama-2-7B"]
BROKEN = dict.fromkeys((*WINDOW.values(), TWO), float(np.log(LLAMA["window"] / LLAMA["4 sinks"]))) | {ONE: 1.0}
THEIRS = {WINDOW[kind]: published(kind, "window") for kind in KINDS} | {ONE: 0.0}


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over that with four first tokens, by their number, for each kind of network, next to the published ones."""
    kinds = [kind for kind in KINDS if kind in ds.kind.values]
    axes = fig.subplots(1, len(kinds), sharey=True)
    for ax, kind in zip(axes, kinds, strict=True):
        ours = np.stack([np.exp(lost(ds, kind, policy)).values.ravel() for policy in SINKS], -1)
        ax.plot(range(len(SINKS)), ours.T, "o-", color=plotting.COLORS["measured"], alpha=0.4)
        theirs = [np.exp(published(kind, policy)) for policy in SINKS]
        ax.plot(range(len(SINKS)), theirs, "s--", color=plotting.COLORS["control"], label="160M, published")
        ax.set_xticks(range(len(SINKS)), [str(count) for count in SINKS.values()])
        ax.set(title=kind, xlabel="first tokens kept", yscale="log")
    axes[0].set(ylabel="perplexity over that with 4")
    axes[0].legend()


DROPPED = {"the first token is dropped": jd.swap(measured_lacks=dropped)}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Pretrained, kind=list(KINDS)),
    paper=jd.grid(Pretrained, kind=list(KINDS), steps=10_000, streams=16),
    seeds=12,
    paper_seeds=32,
    evidence="network",
    assumes=(jd.below("copy_lacks", 0.1),),  # nats at triggers: runs that have learned to copy
    source="arXiv:2309.17453, section 3.3 and table 3 (160M weights); arXiv:2410.13835, section 2 (task); sizes ours",
    tested="One-block decoders with one head, rotary positions and one unit in the MLP, trained by Adam for {steps} steps on "
    "sequences of {length} tokens of the Bigram-Backcopy task, which begin with token 0 (after the sink token, if there is one), "
    "in all kinds from the same starts, read texts of 600 tokens through caches of {keys} keys; {seeds} seeds. Runs count if they "
    "have learned to copy, and perplexities from the 24th token on.",
    plot=plot,
    caption="Perplexity with 0, 1, 2 and 4 first tokens kept over that with 4, by kind of network (lines: runs), next to the "
    "published ones of networks of 160M weights (dashed).",
)

CLAIMS = (
    STUDY.claim(
        id="stream.zero_sink",
        title="A zero sink in training does not make up for the first token",
        statement="One-block decoders of width 32 with a single unit in the MLP, trained for 600 steps on the Bigram-Backcopy "
        "task with a zero sink in the formula of attention, need the first token as those with plain softmax do: of both kinds, "
        "a window that drops the first token has in most networks more than 1.02 times the perplexity of a cache that keeps the "
        "first four, and a cache that keeps the first token alone has the same perplexity to 0.5%, in every run that has learned "
        "to copy.",
        talks=("practical:stream-pretraining-zero-sink", "practical:stream-pretraining-zero-sink-one"),
        quick=jd.grid(Pretrained, kind=list(PLAIN)),
        paper=jd.grid(Pretrained, kind=list(PLAIN), steps=10_000, streams=16),
        judge=judge_needed,
        max_seeds=48,
        bounds=jd.tuned(on="0:8", confirmed_on="98000000:98000012"),
        controls=DROPPED,
        rivals={
            "it does not matter what is kept": jd.off(dict.fromkeys(BREAKS.values(), 0.0)),
            "one first token is too few with a zero sink, as in the networks of 160M weights": {
                EQUAL["zero sink"]: float(np.exp(published("zero sink", "1 sink")))
            },
        },
    ),
    STUDY.claim(
        id="stream.pretraining",
        title="How many first tokens networks with a zero sink or a sink token need",
        statement="Which first tokens must be kept in networks trained as usual, with a zero sink in the formula of attention, and "
        "with a learnable sink token before every sequence? The readings are the nats per token that are lost, over four first "
        "tokens kept, if none is kept, for each kind, and if two are, mean over the kinds; and in how many networks with a sink "
        "token that one alone is not enough, as a share.",
        talks=(
            "practical:stream-table-pretraining",
            "practical:stream-pretraining-vanilla",
            "practical:stream-pretraining-zero-sink",
            "practical:stream-pretraining-sink-token",
        ),
        expected="measured",
        seeds=24,
        judge=judge,
        controls=DROPPED,
        rivals={
            "it does not matter what is kept": jd.off(dict.fromkeys((*WINDOW.values(), ONE, TWO), 0.0)),
            "as in the published networks of 160M weights": THEIRS,
            "without the first token, or with two of them, a network breaks as Llama-2-7B does": BROKEN,
        },
        recorded={
            "nats per token lost by a window, vanilla": (0.221, 0.4991, 0.777),
            "nats per token lost by a window, zero sink": (0.251, 0.4072, 0.564),
            "nats per token lost by a window, sink token": (0.341, 0.5531, 0.765),
            "sink token, share of runs with a perplexity, one first token over four, above 1.02": (0.0147, 0.09091, 0.401),
            "nats per token lost with two first tokens, mean of all kinds": (-9.96e-06, 2.125e-05, 5.25e-05),
        },
    ),
)
