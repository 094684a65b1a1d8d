r"""Training on sequences of Markov chains drawn anew at every step: what the network predicts along it, and where it looks.

Observed on sequences that were not trained on, after every ``every`` steps: the cross-entropy of the next token; the divergence of
the network's predictions from those by counts of tokens, by counts of pairs, and from the uniform one,
:math:`D(q) = \mathrm{mean}\sum_j m_j \ln(m_j/q_j)`; the weight of the first layer on the token before the query's; and of the
second layer on tokens that come right after one equal to the query's, at queries that have such a one. Means are over queries from
position ``FIRST`` on.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import chains
from jaxdyn.theories.ih import model

__all__ = ["FIRST", "Phases", "trial"]

FIRST = 8
HELD_OUT = 64  # sequences


@jd.setting
class Phases:
    """A network and its training.

    Args:
        chain: rows from the Dirichlet law, or scaled until the stationary law is uniform.
        lr: of Adam.
        first: share of the first layer's output that is written; 0 leaves a network of one layer.
        tokens, length, width, batch, every, samples, dtype: sizes.
    """

    chain: jd.Code = jd.code("dirichlet", "doubly_stochastic")
    lr: jd.Swept = 0.03
    first: jd.Swept = 1.0
    tokens: int = 3
    length: int = 64
    width: int = 16
    batch: int = 16
    every: int = 10
    samples: int = 60
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, self.tokens >= 2, "tokens is at least 2", "tokens")
        jd.require(self, self.length > FIRST, f"length is above {FIRST}", "length")
        for name in ("width", "batch", "every", "samples"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)


def draw(s: Phases, key: PRNGKeyArray, count: int) -> Int[Array, "b T1"]:
    """Sequences one token longer than the context."""

    def one(key: PRNGKeyArray) -> Int[Array, " T1"]:
        k_matrix, k_tokens = jax.random.split(key)
        matrix = chains.transitions(k_matrix, s.tokens, s.dtype)
        matrix = jnp.where(s.chain == "dirichlet", matrix, chains.doubly_stochastic(matrix))
        return chains.sample(k_tokens, matrix, s.length + 1)

    return jax.vmap(one)(jax.random.split(key, count))


def entropies(logits: Float[Array, "b T k"], following: Int[Array, "b T"]) -> Float[Array, "b T"]:
    """Cross-entropy of every next token."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), following[..., None], -1)[..., 0]


def observe(s: Phases, params: model.Params, rows: Int[Array, "b T1"]) -> dict[str, Array]:
    """Losses, divergences and attention."""
    tokens, late = rows[:, :-1], slice(FIRST, None)
    logits, weights = model.forward(params, tokens, s.first)
    log = jax.nn.log_softmax(logits)[:, late]

    def divergence(q: Float[Array, "b T k"]) -> Array:
        return jnp.mean(jnp.sum(jnp.exp(log) * (log - jnp.log(q[:, late])), -1))

    counts = {
        "unigram": jax.vmap(lambda r: chains.unigram(r, s.tokens, s.dtype))(tokens),
        "bigram": jax.vmap(lambda r: chains.bigram(r, s.tokens, s.dtype))(tokens),
        "uniform": jnp.full((*tokens.shape, s.tokens), 1 / s.tokens, s.dtype),
    }
    place = jnp.arange(s.length)
    follows = jax.vmap(chains.followers)(tokens)[:, late]
    some = jnp.any(follows, -1)
    looked = jnp.sum(jnp.where(follows, weights[1][:, late], 0), -1)
    return {
        "loss": jnp.mean(entropies(logits, rows[:, 1:])[:, late]),
        **{f"from_{name}": divergence(q) for name, q in counts.items()},
        "before": jnp.mean(weights[0][:, place[late], place[late] - 1]),
        "induced": jnp.sum(jnp.where(some, looked, 0)) / jnp.sum(some).astype(s.dtype),
        "chance": jnp.sum(jnp.where(some, jnp.mean(follows, -1, dtype=s.dtype), 0)) / jnp.sum(some).astype(s.dtype),
    }


def floors(s: Phases, rows: Int[Array, "b T1"]) -> dict[str, Array]:
    """Cross-entropies of the predictors by counts, on the sequences of :func:`observe`."""
    late = slice(FIRST, None)

    def loss(predict: Callable[..., Array]) -> Array:
        q = jax.vmap(lambda r: predict(r, s.tokens, s.dtype))(rows[:, :-1])
        return jnp.mean(entropies(jnp.log(q), rows[:, 1:])[:, late])

    return {"unigram_loss": loss(chains.unigram), "bigram_loss": loss(chains.bigram)}


def trial(s: Phases, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch, and what is observed along it."""
    k_init, k_data, k_held = jax.random.split(key, 3)
    rows = draw(s, k_held, HELD_OUT)

    def loss(params: model.Params, rows: Int[Array, "b T1"]) -> Float[Array, ""]:
        return jnp.mean(entropies(model.forward(params, rows[:, :-1], s.first)[0], rows[:, 1:]))

    tx = optax.adam(s.lr)
    drawn = jax.vmap(lambda i: draw(s, jax.random.fold_in(k_data, i), s.batch))(jnp.arange(s.every * s.samples))
    step = train.make_step(loss, tx, lambda i: drawn[i])
    start = train.init(tx, model.init(k_init, s.tokens, s.length, s.width, s.dtype))
    last, curves = train.record(step, start, lambda t: observe(s, t.params, rows), samples=s.samples, every=s.every)
    shown = model.forward(last.params, rows[:1, :-1], s.first)[1][:, 0]
    measured = ("from_unigram", "from_bigram", "loss", "before", "induced")
    return jd.observables(
        predicted={},
        measured={name: jd.named(curves[name], "step") for name in measured},
        recorded={name: jd.named(curve, "step") for name, curve in curves.items() if name not in measured}
        | floors(s, rows)
        | {
            "pattern": jd.named(shown, "layer query key"),
            "text": jd.named(rows[0, :-1].astype(s.dtype), "query"),
            "steps": jd.named((s.every * jnp.arange(s.samples + 1)).astype(s.dtype), "step"),
        },
        status=train.finite_status(last.params),
    )
