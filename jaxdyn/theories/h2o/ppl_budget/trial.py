r"""Small decoders trained on recall over any distance, then read with every policy and every budget of the cache.

Losses are on sequences that were not trained on, of all next tokens from a quarter of the sequence on ("nats"), and of answers to
questions whose fact is at least a fifth of the sequence back ("copy"). Attention is summed over all queries (as in the paper's
figures, not causal) for the share of the tokens with the most of it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, train
from jaxdyn.data import recall
from jaxdyn.nn.cache import budgets

BUDGETS = (0.05, 0.1, 0.2, 0.4, 1.0)  # of the sequence
TOP = 0.05  # of the tokens
DECAY = 0.9


@jd.setting
class Recall:
    """A decoder and its training; without facts and questions (``stating`` = ``asking`` = 0) the data are a Markov chain."""

    lr: jd.Swept = jd.field(1e-2, above=0)  # initial rate of Adam; decays to a tenth
    stating: jd.Swept = jd.field(0.4, at_least=0, at_most=1)  # f, probability that the next token states a new fact
    asking: jd.Swept = jd.field(0.25, at_least=0, at_most=1)  # q, probability of a question about a stated fact
    fillers: int = jd.field(12, at_least=1)  # filler tokens, the states of a Markov chain
    keys: int = jd.field(4, at_least=1)  # keys, each with one fact in a sequence
    values: int = jd.field(4, at_least=1)  # values that a key can have
    length: int = jd.field(40, at_least=20)  # tokens that the decoder reads of a sequence
    width: int = 32  # entries of the residual stream
    hidden: int = 64  # units in the MLP of each layer
    layers: int = 2  # layers of the decoder
    heads: int = 2  # attention heads in each layer
    std: float = 0.15  # standard deviation of all weights at the start
    batch: int = jd.field(8, at_least=1)  # sequences per training step
    steps: int = jd.field(400, at_least=1)  # training steps
    records: int = jd.field(4, at_least=1)  # records of training after the start
    texts: int = jd.field(16, at_least=1)  # of the evaluation
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.steps % self.records == 0, "steps is a multiple of records", "steps", "records")
        self.shape()

    def shape(self) -> nn.Transformer:
        """The decoder."""
        sizes = {name: getattr(self, name) for name in ("width", "hidden", "layers", "heads", "std", "dtype")}
        return nn.Transformer(vocabulary=self.sizes().vocabulary, **sizes)

    def sizes(self) -> recall.Sizes:
        """The tokens."""
        return recall.Sizes(self.fillers, self.keys, self.values)


def nats(logits: Float[Array, "*b T V"], tokens: Int[Array, "*b T1"]) -> Float[Array, "*b T"]:
    """Cross-entropy of every next token."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., 1:, None], -1)[..., 0]


def mean(values: Array, where: Array) -> Array:
    """Mean over the last axis and the texts, [texts, ..., T], where something is true, [texts, T]; 0 if it never is."""
    where = where.reshape(where.shape[0], *[1] * (values.ndim - 2), where.shape[1])
    return jnp.sum(jnp.where(where, values, 0), (0, -1)) / jnp.maximum(jnp.sum(where), 1).astype(values.dtype)


def shares(b: Float[Array, "L texts h T T"]) -> Float[Array, ""]:
    """Share of all attention that the tokens with the most of it get, mean over layers, texts and heads."""
    total = budgets.received(b)
    count = max(1, round(TOP * total.shape[-1]))
    return jnp.mean(jnp.sum(jax.lax.top_k(total, count)[0], -1) / jnp.sum(total, -1))


def observe(s: Recall, params: PyTree, tokens: Int[Array, "b T1"]) -> dict[str, Array]:
    """Loss, share of right answers and share of the heaviest tokens, with the whole cache."""
    logits, seen = nn.network(s.shape()).apply(params, tokens[:, :-1], observe=("attention",))
    far = recall.distance(s.sizes(), tokens[:, :-1]) >= s.length // 5
    right = (jnp.argmax(logits, -1) == tokens[:, 1:]).astype(logits.dtype)
    late = jnp.arange(s.length) >= s.length // 4
    loss = nats(logits, tokens)
    late = jnp.broadcast_to(late, far.shape)
    return {"nats": mean(loss, late), "right": mean(right, far), "top": shares(seen["attention"])}


def compare(s: Recall, params: PyTree, tokens: Int[Array, "b T1"], key: PRNGKeyArray) -> dict[str, Array]:
    """All policies and budgets: losses [p B], and what is lost by eviction [p B]."""
    shape, policies = s.shape(), budgets.policies(BUDGETS, s.length)
    far = recall.distance(s.sizes(), tokens[:, :-1]) >= s.length // 5
    late = jnp.broadcast_to(jnp.arange(s.length) >= s.length // 4, far.shape)
    _, seen = nn.network(shape).apply(params, tokens[:, :-1], observe=("attention",))
    given = jnp.moveaxis(budgets.received(seen["attention"]), 1, 0)  # [b, L, h, T]

    def text(one: tuple[Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        row, scores, noise = one

        def each(policy: budgets.TracedPolicy) -> tuple[Array, Array, Array, Array]:
            logits, seen = budgets.decode(shape, params, policy, row[:-1], scores, noise, DECAY)
            tight = jnp.where(seen.lost > 1e-3, seen.error / jnp.maximum(seen.bound, 1e-9), 0)
            loss = nats(logits, row)
            lost, error = (jnp.mean(x, (0, 1)) for x in (seen.lost, seen.error))
            return loss, lost, error, jnp.max(tight, (0, 1))

        return jax.vmap(jax.vmap(each))(policies)

    loss, lost, error, tight = jax.lax.map(text, (tokens, given, jax.random.split(key, s.texts)))
    found = {"nats": mean(loss, late), "copy": mean(loss, far), "lost": mean(lost, late), "error": mean(error, late)}
    return found | {"tight": jnp.max(tight, (0, -1))}


def trial(s: Recall, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch; then all policies and budgets."""
    # network and data
    k_law, k_init, k_data, k_held, k_luck = jax.random.split(key, 5)
    law = recall.chain(k_law, s.sizes(), dtype=s.dtype)

    def batch(key: PRNGKeyArray, count: int) -> Int[Array, "b T1"]:
        keys = jax.random.split(key, count)
        return jax.vmap(lambda k: recall.draw(k, s.sizes(), law, s.length + 1, s.stating, s.asking))(keys)

    net = nn.network(s.shape())

    def loss(params: PyTree, tokens: Int[Array, "b T1"]) -> Float[Array, ""]:
        return jnp.mean(nats(net.apply(params, tokens[:, :-1]), tokens))

    tx = optax.adam(optax.schedules.cosine_decay_schedule(s.lr, s.steps, 0.1))
    data = jax.vmap(lambda i: batch(jax.random.fold_in(k_data, i), s.batch))(jnp.arange(s.steps))  # all sequences, drawn ahead
    step = train.make_step(loss, tx, lambda i: data[i])
    # training, then every policy and budget
    held = batch(k_held, s.texts)
    every = s.steps // s.records
    start = train.init(tx, net.init(k_init))
    last, curves = train.record(step, start, lambda t: observe(s, t.params, held), samples=s.records, every=every)
    even = jnp.tri(s.length, dtype=s.dtype) / jnp.arange(1, s.length + 1, dtype=s.dtype)[:, None]
    found = compare(s, last.params, held, k_luck)
    return jd.observables(
        predicted={},
        measured={name: jd.named(x, "policy budget") for name, x in found.items()} | {"top": jd.named(curves["top"], "step")},
        recorded={
            "uniform": shares(even[None, None, None]),
            "curve": jd.named(curves["nats"], "step"),
            "right": jd.named(curves["right"], "step"),
        },
        status=train.finite_status(last.params),
        coords={"policy": budgets.POLICIES, "budget": BUDGETS, "step": range(0, s.steps + 1, every)},
    )
