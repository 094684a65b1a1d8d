r"""A one-block transformer trained on the Bigram-Backcopy task, and where its head looks.

Observed on sequences that were not trained on, at queries from position 2 on; "idle" are those whose token is no trigger, "copy"
those at triggers: the weight on token 0 (where weights do not sum to one, also its share of their sum); the margin
:math:`\Delta` of its score over the mean score of the other keys; and the drain, the size of what its value writes into the
stream over the mean of all other tokens'. Recorded with
them the weights at idle queries on the query's own token and on the one before it, and all
weights at the end on the first of those sequences.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import optim, train
from jaxdyn.data import backcopy
from jaxdyn.theories.sink import model

FIRST = 2  # position from which the loss counts
MEASURED = ("idle", "copying", "drain", "margin", "share")
HELD_OUT = 32  # sequences
MOST = 3  # triggers


@jd.setting
class Backcopy:
    """A network and its training.

    Args:
        attention: form of the weights.
        optimizer: of the training.
        lr: its rate.
        every: steps between two samples.
        triggers: their number; 0 leaves the head nothing to do.
        value_rate: factor of the gradients of V and O; 0 freezes what maps a token to its value.
        longest: steps for which sequences are sampled, at least samples times every.
        vocabulary, length, width, hidden, batch, samples, dtype: sizes.
    """

    attention: jd.Code = jd.code(*model.FORMS)
    optimizer: jd.Code = jd.code("adam", "sgd")
    lr: jd.Swept = jd.field(1.2e-2, above=0)
    every: jd.Swept = jd.field(15.0, at_least=1, whole=True)
    triggers: jd.Swept = jd.field(3.0, at_least=0, at_most=MOST, whole=True)
    value_rate: jd.Swept = jd.field(1.0, at_least=0)
    longest: int = 2400
    vocabulary: int = jd.field(17, above=MOST + 1)
    length: int = jd.field(32, above=FIRST + 1)
    width: int = jd.field(32, at_least=1)
    hidden: int = jd.field(64, at_least=1)
    batch: int = jd.field(8, at_least=1)
    samples: int = jd.field(40, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse more steps than there are batches."""
        whole = self.every * self.samples <= self.longest
        jd.require(self, whole, "every is at most longest / samples", "every", "longest")


def nats(s: Backcopy, params: model.Params, tokens: Int[Array, "b T1"]) -> tuple[Float[Array, "b T"], model.Watched]:
    """Cross-entropy of every next token, and what the head does."""
    logits, seen = jax.vmap(lambda row: model.forward(params, row, s.attention))(tokens[:, :-1])
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)[..., 0], seen


def observe(s: Backcopy, law: backcopy.Law, params: model.Params, tokens: Int[Array, "b T1"]) -> dict[str, Array]:
    """Losses and what the head does, at idle queries and at those that copy."""
    # queries that are idle, and those that copy
    loss, seen = nats(s, params, tokens)
    at = jnp.arange(s.length)
    late = at >= FIRST
    copy = backcopy.due(law, tokens[:, :-1])

    def mean(values: Float[Array, "b T"], where: Array) -> Array:
        chosen = where & late
        return jnp.sum(jnp.where(chosen, values, 0)) / jnp.maximum(jnp.sum(chosen), 1).astype(values.dtype)

    # where the head looks, and what it writes
    first, margin = seen.weights[..., 0], model.margin(seen.scores, at)
    size = jnp.linalg.norm(seen.written, axis=-1)
    floor = backcopy.entropies(law)[tokens[:, :-1]]
    return {
        "excess": mean(loss - floor, ~copy),
        "copy_loss": mean(loss, copy),
        "idle": mean(first, ~copy),
        "copying": mean(first, copy),
        "share": mean(first / jnp.maximum(jnp.sum(seen.weights, -1), 1e-12), ~copy),
        "margin": mean(margin, ~copy),
        "drain": jnp.mean(size[:, 0]) / jnp.mean(size[:, FIRST:]),
        "own": mean(seen.weights[:, at, at], ~copy),
        "before": mean(seen.weights[:, at, jnp.maximum(at - 1, 0)], ~copy),
    }


def task(s: Backcopy, key: PRNGKeyArray) -> backcopy.Law:
    """A random chain; tokens above ``triggers`` go on by the chain."""
    law = backcopy.law(key, s.vocabulary, MOST, dtype=s.dtype)
    return law._replace(triggers=law.triggers & (jnp.arange(s.vocabulary) <= s.triggers))


def training(s: Backcopy, law: backcopy.Law, key: PRNGKeyArray) -> tuple[optax.GradientTransformation, Callable[..., train.State]]:
    """The optimizer and a step; all sequences are sampled ahead."""

    def row(i: Int[Array, ""]) -> Int[Array, "b T1"]:
        return sequences(s, law, jax.random.fold_in(key, i), s.batch)

    data = jax.vmap(row)(jnp.arange(s.longest))

    def loss(params: model.Params, tokens: Int[Array, "b T1"]) -> Float[Array, ""]:
        params = params._replace(
            qkv=params.qkv.at[2].set(slowed(params.qkv[2], s.value_rate)), out=slowed(params.out, s.value_rate)
        )
        return jnp.mean(nats(s, params, tokens)[0][:, FIRST:])

    tx = optim.method(s.optimizer, s.lr).tx
    return tx, train.make_step(loss, tx, lambda i: data[i])


def slowed(x: Array, factor: Float[Array, ""]) -> Array:
    """The same array, with its gradient times a factor."""
    return factor * x + (1 - factor) * jax.lax.stop_gradient(x)


def sequences(s: Backcopy, law: backcopy.Law, key: PRNGKeyArray, count: int) -> Int[Array, "b T1"]:
    """Sequences of the task, one token longer than the context."""
    return jax.vmap(lambda k: backcopy.draw(k, law, s.length + 1))(jax.random.split(key, count))


def trial(s: Backcopy, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch; losses and what the head does along it."""
    k_law, k_init, k_data, k_held = jax.random.split(key, 4)
    law = task(s, k_law)
    tx, step = training(s, law, k_data)
    tokens = sequences(s, law, k_held, HELD_OUT)
    start = train.init(tx, model.init(k_init, s.vocabulary, s.length, s.width, s.hidden, s.dtype))
    every = jnp.round(s.every).astype(jnp.int32)
    last, curves = train.record(step, start, lambda t: observe(s, law, t.params, tokens), samples=s.samples, every=every)
    names = {name: jd.named(curve, "step") for name, curve in curves.items()}
    shown = nats(s, last.params, tokens[:1])[1].weights[0]
    return jd.observables(
        predicted={},
        measured={name: names[name] for name in MEASURED},
        recorded={name: names[name] for name in names if name not in MEASURED}
        | {
            "uniform": jnp.mean(1 / jnp.arange(FIRST + 1, s.length + 1).astype(s.dtype)),
            "pattern": jd.named(shown, "query key"),
            "text": jd.named(tokens[0, :-1].astype(s.dtype), "query"),
            "steps": jd.named((every * jnp.arange(s.samples + 1)).astype(s.dtype), "step"),
        },
        status=train.finite_status(last.params),
    )
