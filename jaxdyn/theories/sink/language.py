r"""A small language model trained on a text: does a sink emerge, and what does a cache of the training's length cost on long texts?

The sink metric of arXiv:2410.10781, section 3: :math:`\alpha_{lh}` is the mean weight on the first token, over the queries after
it, of head h in layer l, and :math:`\text{Sink}_\epsilon` the share of heads with :math:`\alpha_{lh} > \epsilon`, here 0.3.
Sequences of training are cut out of the text anywhere ("anywhere"), or their first token is replaced by one of its own ("token").
Then texts of 50 times that length, which were not trained on, go through caches, and perplexities on the same tokens are compared.
Letters: L keys of the caches and tokens of a sequence of training; T tokens of a text.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, text, train
from jaxdyn.nn import cache
from jaxdyn.text import language

__all__ = ["BEGINS", "EDGES", "EPSILON", "POLICIES", "Language", "places", "stretches", "trial"]

BEGINS = ("anywhere", "token")
SINKS = {"window": 0, "1 sink": 1, "2 sinks": 2, "4 sinks": 4, "8 sinks": 8}  # by name of a policy
POLICIES = (*SINKS, "absolute", "recomputed", "dense")
EPSILON = 0.3
EDGES = (0, 1, 2, 4, 8, 16, 32, 50)  # of the stretches of a text, in lengths of training
PROBES = 32  # sequences on which attention is observed


@jd.setting
class Language:
    """A decoder, its training on a text, and the texts that it reads.

    Args:
        begins: how sequences of training and texts begin, one of :data:`BEGINS`.
        lr: peak of the rate of Adam with decoupled weight decay, after a linear warm-up of a tenth of the steps; a cosine then
            leads to a tenth of it.
        decay: of the weights.
        attention: form of the attention.
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: digest of the contents of the file or folder; filled in.
        level: "bytes", "bpe" or "words".
        vocabulary: of words or BPE pieces.
        width, hidden, layers, heads: of the decoder, which has rotary positions.
        sink_token: whether the decoder has a learnable sink token, a first token of all that it reads.
        length: L, tokens of a sequence of training and keys of the caches.
        batch: sequences of a step.
        steps: of training.
        records: how often the sink metric and the validation loss are recorded after the start.
        streams: texts that are read, from the validation and the test part.
        dtype: of the network.
    """

    begins: jd.Code = jd.code(*BEGINS)
    lr: jd.Swept = 1e-2
    decay: jd.Swept = 0.1
    attention: str = "softmax"
    text: str = "topics"
    digest: str = ""
    level: str = "bytes"
    vocabulary: int = 1024
    width: int = 32
    hidden: int = 88
    layers: int = 2
    heads: int = 4
    sink_token: bool = False
    length: int = 32
    batch: int = 8
    steps: int = 800
    records: int = 4
    streams: int = 4
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse counts that are not positive and a text too short for the streams; note the text."""
        for name in ("batch", "records", "streams"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(
            self, self.steps >= 10 and self.steps % self.records == 0, "steps is at least 10, a multiple of records", "steps"
        )
        jd.require(self, self.length > max(SINKS.values()), f"length is above {max(SINKS.values())}", "length")
        jd.require(self, self.lr > 0 and self.decay >= 0, "lr is positive, decay at least 0", "lr", "decay")
        self.shape(2)
        if self.text not in ("topics", "markov"):
            object.__setattr__(self, "digest", self.corpus().digest)

    def shape(self, vocabulary: int) -> nn.Decoder:
        """The decoder for so many tokens."""
        names = ("width", "hidden", "layers", "heads", "attention", "sink_token", "dtype")
        return nn.Decoder(vocabulary=vocabulary, **{name: getattr(self, name) for name in names})

    def corpus(self) -> text.Corpus:
        """The text; a path that starts with ~ is in the user's home folder."""
        name = self.text if self.text in ("topics", "markov") else str(Path(self.text).expanduser())
        with jax.ensure_compile_time_eval():  # the generated text is drawn while the trial is traced
            return text.load(name, self.level, None if self.level == "bytes" else self.vocabulary)


def begun(s: Language, own: int, tokens: Int[Array, "b n"]) -> Int[Array, "b n"]:
    """The sequences, whose first token is replaced by the one of its own in that world."""
    return tokens.at[:, 0].set(jnp.where(s.begins == "token", own, tokens[:, 0]))


def nats(logits: Float[Array, "*b n V"], tokens: Int[Array, "*b n1"]) -> Float[Array, "*b n"]:
    """Cross-entropy of every next token."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., 1:, None], -1)[..., 0]


def alpha(net: nn.Network, params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, "layer head"]:
    """Mean weight on the first token over the queries after it; a sink token is the first."""
    _, seen = net.trunk(params, tokens, observe=("attention",))
    return jnp.mean(seen["attention"][:, :, :, 1:, 0], (1, 3))


def read(s: Language, shape: nn.Decoder, params: PyTree, tokens: Int[Array, "b T1"]) -> Float[Array, "policy T"]:
    """Cross-entropy at every position of the texts, mean over them, with every policy."""

    def cached(sinks: Int[Array, ""], positions: str = "cache") -> Float[Array, " T"]:
        policy = cache.Policy(kind="streaming", size=s.length, sinks=sinks, positions=positions)
        return jnp.mean(jax.vmap(lambda one: cache.losses(shape, params, policy, one)[1])(tokens), 0)

    def again(one: Int[Array, " T1"]) -> Float[Array, " T"]:
        return nats(cache.recompute(shape, params, s.length, one[:-1]), one)

    def whole(one: Int[Array, " T1"]) -> Float[Array, " T"]:
        return nats(nn.decoder(shape).apply(params, one[None, :-1])[0], one)

    within = jax.vmap(cached)(jnp.asarray(list(SINKS.values()), jnp.int32))
    others = (cached(jnp.int32(1), "absolute"), jnp.mean(jax.vmap(again)(tokens), 0), jnp.mean(jax.lax.map(whole, tokens), 0))
    return jnp.concatenate([within, jnp.stack(others)])


def stretches(values: Float[Array, "*b T"], length: int) -> Float[Array, "*b stretch"]:
    """Means between :data:`EDGES`, which count lengths of training."""
    ends = zip(EDGES[:-1], EDGES[1:], strict=True)
    return jnp.stack([values[..., a * length : b * length].mean(-1) for a, b in ends], -1)


def places(length: int, dtype: str) -> Float[Array, " stretch"]:
    """The middle of every stretch, in tokens."""
    return jnp.asarray([length * (a + b) / 2 for a, b in zip(EDGES[:-1], EDGES[1:], strict=True)], dtype)


def held(parts: tuple[np.ndarray, ...], count: int, length: int) -> Int[Array, "b n"]:
    """Sequences at equal distances over the parts of the text that were not trained on."""
    stream = np.concatenate(parts)
    start = np.linspace(0, len(stream) - length, count).astype(int)
    return jnp.asarray(stream[start[:, None] + np.arange(length)])


def trial(s: Language, key: PRNGKeyArray) -> jd.Observables:
    """Train, with the sink metric along it, and read long texts with every policy.

    Cross-entropies are averaged over the texts and over stretches of them between :data:`EDGES`.
    """
    k_init, k_data = jax.random.split(key)
    corpus = s.corpus()
    own = len(corpus.vocabulary)
    net = nn.decoder(s.shape(own + 1))
    stream, parts = jnp.asarray(corpus.train), (corpus.valid, corpus.test)
    rate = optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, s.steps // 10, s.steps, 0.1)
    tx = optax.chain(
        optax.scale_by_adam(),
        optax.add_decayed_weights(s.decay),
        optax.scale_by_learning_rate(lambda count: (s.lr * rate(count)).astype(s.dtype)),
    )

    def batch(i: Int[Array, ""]) -> Int[Array, "b n"]:
        start = jax.random.randint(jax.random.fold_in(k_data, i), (s.batch, 1), 0, stream.size - s.length)
        return begun(s, own, stream[start + jnp.arange(s.length + 1)])

    def loss(params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, ""]:
        return language.loss(net, params, tokens[:, :-1], tokens[:, 1:])

    probe = begun(s, own, held(parts, PROBES, s.length + 1))

    def observe(state: train.State) -> tuple[Array, Array]:
        return alpha(net, state.params, probe[:, :-1]), loss(state.params, probe)

    start = train.init(tx, net.init(k_init))
    last, (weight, curve) = train.record(
        train.make_step(loss, tx, batch), start, observe, samples=s.records, every=s.steps // s.records
    )
    texts = begun(s, own, held(parts, s.streams, EDGES[-1] * s.length + 1))
    lost = read(s, net.shape, last.params, texts)
    return jd.observables(
        predicted={},
        measured={
            "loss": jd.named(stretches(lost, s.length), "policy stretch"),
            "alpha": jd.named(weight, "step layer head"),
            "sink": jd.named(jnp.mean((weight > EPSILON).astype(s.dtype), (1, 2)), "step"),
        },
        recorded={
            "validation": jd.named(curve, "step"),
            "uniform": jnp.mean(1 / jnp.arange(2, s.length + s.sink_token + 1).astype(s.dtype)),
            "place": jd.named(places(s.length, s.dtype), "stretch"),
        },
        coords={"policy": POLICIES},
        status=train.finite_status((last.params, lost)),
    )
