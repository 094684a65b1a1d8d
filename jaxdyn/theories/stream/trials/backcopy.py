r"""A decoder trained on short sequences of the Bigram-Backcopy task, then a text of 50 lengths of a cache through caches.

Sequences of training begin with token 0, which does not return; so do the texts. The head may put its idle weight on it, and does
so less with weight decay. With the front of all sequences cut off, no network ever sees token 0.

The law of the task is known. So the cross-entropy of every position is taken in expectation over the next token, and what is
recorded is what the network lacks, :math:`\mathrm{KL}(\pi(\cdot | x_{t-1}, x_t) \,\|\, p_t)`, beside the entropy of the law: the
logarithm of the perplexity is their sum. Caches are those of :mod:`jaxdyn.nn.cache`, decoded token by token.
The caches are shorter than the sequences of training: at the largest distance in these, training has no key but that of token 0,
and a window of that length would be judged where the network was never trained.
Letters: L keys of a cache, S sinks, T tokens of a text, V of the vocabulary.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax.scipy.special import xlogy
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import backcopy
from jaxdyn.nn import cache
from jaxdyn.nn.decoder import Decoder, apply, init
from jaxdyn.theories.sink.trials.language import EDGES, places, stretches

__all__ = ["POLICIES", "Streamed", "trial"]

SINKS = {"window": 0, "1 sink": 1, "replaced": 1}  # by name of a policy
POLICIES = (*SINKS, "dense")
FORMS = ("token", "place")  # what makes a sink
SPARE = 3  # tokens beyond the length that are drawn
FIRST = 2  # position from which the loss of training counts
HELD_OUT = 32  # sequences on which attention is observed


@jd.setting
class Streamed:
    """A network, its training, and the texts that it reads.

    Args:
        lr: peak of the rate of Adam, after a linear warm-up of a twentieth of the steps; a cosine then leads to a tenth of it.
        decay: of the weights, decoupled from Adam.
        cut: tokens that are left out at the front of every sequence and text, token 0 first; at most :data:`SPARE`.
        attention: form of the attention.
        triggers: tokens after which the token before them is copied.
        vocabulary: V.
        length: tokens of a sequence of training.
        keys: L, of the caches.
        layers, width, hidden: of the decoder, which has one head in a layer.
        batch: sequences of a step.
        steps: of training.
        streams: texts that are read.
        dtype: of the network.
    """

    lr: jd.Swept = 2e-2
    decay: jd.Swept = 0.0
    cut: jd.Swept = 0
    attention: str = "softmax"
    triggers: int = 6
    vocabulary: int = 33
    length: int = 16
    keys: int = 12
    layers: int = 1
    width: int = 32
    hidden: int = 1
    batch: int = 16
    steps: int = 2500
    streams: int = 4
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0 and self.decay >= 0, "lr is positive, decay at least 0", "lr", "decay")
        jd.require(self, 0 <= self.cut <= SPARE, f"cut is 0 to {SPARE}", "cut")
        jd.require(self, 0 <= self.triggers < self.vocabulary - 1, "triggers is at least 0 and below vocabulary - 1", "triggers")
        for name in ("layers", "width", "hidden", "batch", "streams"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(self, self.steps >= 20, "steps is at least 20", "steps")
        jd.require(self, 1 < self.keys <= self.length, "keys is above 1 and at most length", "keys", "length")

    @property
    def shape(self) -> Decoder:
        """The decoder; embeddings have the size of the stream that the norms give."""
        sizes = {name: getattr(self, name) for name in ("vocabulary", "layers", "width", "hidden", "attention", "dtype")}
        return Decoder(heads=1, std=0.2, **sizes)


def drawn(law: backcopy.Law, cut: int | Int[Array, ""], key: PRNGKeyArray, count: int, length: int) -> Int[Array, "b n"]:
    """Sequences of the task, without their first tokens."""

    def one(key: PRNGKeyArray) -> Int[Array, " n"]:
        return jax.lax.dynamic_slice_in_dim(backcopy.draw(key, law, length + SPARE), jnp.asarray(cut, jnp.int32), length)

    return jax.vmap(one)(jax.random.split(key, count))


def lacking(law: backcopy.Law, tokens: Int[Array, "*b n"], logits: Float[Array, "*b n V"]) -> Float[Array, "*b n"]:
    """KL divergence of the network's next token from the law's, in nats, at every position but the first, which gets 0."""
    before, now = tokens[..., :-1], tokens[..., 1:]
    copied = jax.nn.one_hot(before, law.chain.shape[0], dtype=law.chain.dtype)
    pi = jnp.where(law.triggers[now][..., None], copied, law.chain[now])
    value = jnp.sum(xlogy(pi, pi) - pi * jax.nn.log_softmax(logits[..., 1:, :]), -1)
    return jnp.concatenate([jnp.zeros_like(value[..., :1]), value], -1)


def started(s: Streamed, key: PRNGKeyArray) -> PyTree:
    """Weights at the start: embeddings have entries of size 1."""
    params = init(s.shape, key)
    return params | {"embed": 5 * params["embed"]}


def trained(s: Streamed, law: backcopy.Law, k_init: PRNGKeyArray, k_data: PRNGKeyArray) -> PyTree:
    """Weights after training; all sequences are drawn ahead."""
    rate = optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, s.steps // 20, s.steps, 0.1)
    tx = optax.chain(
        optax.scale_by_adam(),
        optax.add_decayed_weights(s.decay),
        optax.scale_by_learning_rate(lambda count: (s.lr * rate(count)).astype(s.dtype)),
    )

    def loss(params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, ""]:
        logits = jax.nn.log_softmax(apply(s.shape, params, tokens[:, :-1]))
        return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[:, FIRST:])

    data = jax.vmap(lambda i: drawn(law, s.cut, jax.random.fold_in(k_data, i), s.batch, s.length + 1))(jnp.arange(s.steps))
    step = train.make_step(loss, tx, lambda i: data[i])
    start = train.init(tx, started(s, k_init))
    return jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), start).params


def looked(s: Streamed, law: backcopy.Law, params: PyTree, tokens: Int[Array, "b n"]) -> dict[str, Array]:
    """Weight on the first token of sequences of the training's length, by layer: where the head is idle, and where it copies."""
    logits, seen = apply(s.shape, params, tokens, observe=("attention",))
    first = seen["attention"][:, :, 0, :, 0]  # [layer, b, n]
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
    :data:`~jaxdyn.theories.sink.trials.language.EDGES`; the entropy is that of what comes after two lengths of training.
    Predicted is the share of the nats lost with a window that are lost with another token in the place of token 0: all, if the
    token makes the sink, and none, if its place does.
    """
    k_law, k_init, k_data, k_held = jax.random.split(key, 4)
    law = backcopy.law(k_law, s.vocabulary, s.triggers, concentration=1.0, dtype=s.dtype)
    params = trained(s, law, k_init, k_data)
    k_held, k_text = jax.random.split(k_held)
    seen = looked(s, law, params, drawn(law, s.cut, k_held, HELD_OUT, s.length))
    tokens = drawn(law, s.cut, k_text, s.streams, EDGES[-1] * s.keys)
    missing = jnp.mean(read(s, law, params, tokens), 1)
    late = dict(zip(POLICIES, jnp.mean(missing[:, 2 * s.keys :], 1), strict=True))
    share = (late["replaced"] - late["1 sink"]) / (late["window"] - late["1 sink"])
    floor = jnp.mean(backcopy.entropies(law)[tokens[:, 2 * s.keys :]])
    return jd.observables(
        predicted={"share": jd.named(jnp.asarray([1.0, 0.0], s.dtype), "form")},
        measured={"lacks": jd.named(stretches(missing, s.keys), "policy stretch"), "share": share},
        recorded={n: x for n, x in seen.items() if n != "copy_lacks"}
        | {"entropy": floor, "place": jd.named(places(s.keys, s.dtype), "stretch")},
        assumed={"copy_lacks": seen["copy_lacks"]},
        coords={"policy": POLICIES, "form": FORMS},
        status=train.finite_status((params, missing)),
    )
