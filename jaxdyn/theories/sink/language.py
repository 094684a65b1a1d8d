r"""A small language model trained on a text: does a sink emerge, and what does a cache of the training's length cost on long texts?

The sink metric of arXiv:2410.10781, section 3: :math:`\alpha_{lh}` is the mean weight on the first token, over the queries after
it, of head h in layer l, and :math:`\text{Sink}_\epsilon` the share of heads with :math:`\alpha_{lh} > \epsilon`, here 0.3.
Sequences of training are cut out of the text anywhere ("anywhere"), or their first token is replaced by one of its own ("token").
Then texts of 50 times that length, which were not trained on, go through caches, and perplexities on the same tokens are compared.
Letters: L keys of the caches and tokens of a sequence of training; T tokens of a text.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, train
from jaxdyn.nn import cache
from jaxdyn.text import pretraining

BEGINS = ("anywhere", "token")
SINKS = {"window": 0, "1 sink": 1, "2 sinks": 2, "4 sinks": 4, "8 sinks": 8}  # by name of a policy
POLICIES = (*SINKS, "absolute", "recomputed", "dense")
EPSILON = 0.3
EDGES = (0, 1, 2, 4, 8, 16, 32, 50)  # of the stretches of a text, in lengths of training
PROBES = 32  # sequences on which attention is observed


@jd.setting
class Language(pretraining.TextTraining):
    """A decoder, its training on a text, to the fields of which these are added, and the texts that it reads.

    Args:
        begins: how sequences of training and texts begin, one of :data:`BEGINS`.
        lr: peak of the rate of Adam with decoupled weight decay, after a linear warm-up of a tenth of the steps; a cosine then
            leads to a tenth of it.
        decay: of the weights.
        attention: form of the attention.
        width, hidden, layers, heads: of the decoder, which has rotary positions.
        sink_token: whether the decoder has a learnable sink token, a first token of all that it reads.
        length: L, tokens of a sequence of training and keys of the caches.
        streams: texts that are read, from the validation and the test part.
        dtype: of the network.
    """

    begins: jd.Code = jd.code(*BEGINS)
    lr: jd.Swept = jd.field(1e-2, above=0)
    decay: jd.Swept = jd.field(0.1, at_least=0)
    attention: str = "softmax"
    width: int = 32
    hidden: int = 88
    layers: int = 2
    heads: int = 4
    sink_token: bool = False
    length: int = jd.field(32, above=max(SINKS.values()))
    steps: int = jd.field(800, at_least=10)
    streams: int = jd.field(4, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        pretraining.TextTraining.__post_init__(self)
        self.shape(2)

    def shape(self, vocabulary: int) -> nn.Transformer:
        """The decoder for so many tokens."""
        names = ("width", "hidden", "layers", "heads", "attention", "sink_token", "dtype")
        return nn.Transformer(vocabulary=vocabulary, **{name: getattr(self, name) for name in names})


def begun(s: Language, own: int, tokens: Int[Array, "b n"]) -> Int[Array, "b n"]:
    """The sequences, whose first token is replaced by the one of its own in that world."""
    return tokens.at[:, 0].set(jnp.where(s.begins == "token", own, tokens[:, 0]))


def nats(logits: Float[Array, "*b n V"], tokens: Int[Array, "*b n1"]) -> Float[Array, "*b n"]:
    """Cross-entropy of every next token."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., 1:, None], -1)[..., 0]


def alpha(net: nn.Network, params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, "layer head"]:
    """Mean weight on the first token over the queries after it; a sink token is the first."""
    _, observed = net.trunk(params, tokens, observe=("attention",))
    return jnp.mean(observed["attention"][:, :, :, 1:, 0], (1, 3))


def read(s: Language, shape: nn.Transformer, params: PyTree, tokens: Int[Array, "b T1"]) -> Float[Array, "policy T"]:
    """Cross-entropy at every position of the texts, mean over them, with every policy."""

    def cached(sinks: Int[Array, ""], positions: str = "cache") -> Float[Array, " T"]:
        policy = cache.Policy(kind="streaming", size=s.length, sinks=sinks, positions=positions)
        return jnp.mean(jax.vmap(lambda one: cache.losses(shape, params, policy, one)[1])(tokens), 0)

    def again(one: Int[Array, " T1"]) -> Float[Array, " T"]:
        return nats(cache.recompute(shape, params, s.length, one[:-1]), one)

    def whole(one: Int[Array, " T1"]) -> Float[Array, " T"]:
        return nats(nn.network(shape).apply(params, one[None, :-1])[0], one)

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


def trial(s: Language, key: PRNGKeyArray) -> jd.Observables:
    """Train, with the sink metric along it, and read long texts with every policy.

    Cross-entropies are averaged over the texts and over stretches of them between :data:`EDGES`.
    """
    # network, text and training
    k_init, k_data = jax.random.split(key)
    corpus = s.corpus()
    own = len(corpus.vocabulary)
    net = nn.network(s.shape(own + 1))
    stream, unseen = jnp.asarray(corpus.train), np.concatenate([corpus.valid, corpus.test])
    rate = pretraining.schedule(s.steps)
    tx = optax.chain(
        optax.scale_by_adam(),
        optax.add_decayed_weights(s.decay),
        optax.scale_by_learning_rate(lambda count: (s.lr * rate(count)).astype(s.dtype)),
    )

    def batch(i: Int[Array, ""]) -> Int[Array, "b n"]:
        return begun(s, own, pretraining.sample(jax.random.fold_in(k_data, i), stream, s.batch, s.length))

    def loss(params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, ""]:
        return pretraining.loss(net, params, tokens)

    probe = begun(s, own, jnp.asarray(pretraining.spaced(unseen, PROBES, s.length)))

    def observe(state: train.State) -> tuple[Array, Array]:
        return alpha(net, state.params, probe[:, :-1]), loss(state.params, probe)

    # the sink metric along training
    start = train.init(tx, net.init(k_init))
    last, (weight, curve) = train.record(train.make_step(loss, tx, batch), start, observe, samples=s.records, every=s.interval)
    # long texts, read with every policy
    texts = begun(s, own, jnp.asarray(pretraining.spaced(unseen, s.streams, EDGES[-1] * s.length)))
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
