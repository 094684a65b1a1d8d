r"""A one-block transformer trained on the Bigram-Backcopy task, and where its head looks.

Observed on sequences that were not trained on, at queries from position 2 on; "idle" are those whose token is no trigger, "copy"
those at triggers: the weight on token 0 (where weights do not sum to one, also its share of their sum); the margin
:math:`\Delta` of its score over the mean score of the other keys; and the drain, the size of what its value writes into the
stream over the mean of all other tokens'.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import backcopy
from jaxdyn.theories.sink import model

__all__ = ["FIRST", "Backcopy", "trial"]

FIRST = 2  # position from which the loss counts
HELD_OUT = 32  # sequences


@jd.setting
class Backcopy:
    """A network and its training; ``triggers`` = 0 leaves the head nothing to do."""

    attention: jd.Code = jd.code(*model.FORMS)
    optimizer: jd.Code = jd.code("adam", "sgd")
    lr: jd.Swept = 1.2e-2
    triggers: int = 3
    vocabulary: int = 17
    length: int = 32
    width: int = 32
    hidden: int = 64
    batch: int = 8
    samples: int = 4
    every: int = 150  # steps between two samples
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, 0 <= self.triggers < self.vocabulary - 1, "triggers is at least 0 and below vocabulary - 1", "triggers")
        for name in ("width", "hidden", "batch", "samples", "every"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(self, self.length > FIRST + 1, f"length is above {FIRST + 1}", "length")


def nats(s: Backcopy, params: model.Params, tokens: Int[Array, "b T1"]) -> tuple[Float[Array, "b T"], model.Watched]:
    """Cross-entropy of every next token, and what the head does."""
    logits, seen = jax.vmap(lambda row: model.forward(params, row, s.attention))(tokens[:, :-1])
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1)[..., 0], seen


def observe(s: Backcopy, law: backcopy.Law, params: model.Params, tokens: Int[Array, "b T1"]) -> dict[str, Array]:
    """Losses and what the head does, at idle queries and at those that copy."""
    loss, seen = nats(s, params, tokens)
    late = jnp.arange(s.length) >= FIRST
    copy = backcopy.due(law, tokens[:, :-1])

    def mean(values: Float[Array, "b T"], where: Array) -> Array:
        chosen = where & late
        return jnp.sum(jnp.where(chosen, values, 0)) / jnp.maximum(jnp.sum(chosen), 1).astype(values.dtype)

    first, others = seen.weights[..., 0], jnp.tril(seen.scores)[..., 1:]
    margin = seen.scores[..., 0] - jnp.sum(others, -1) / jnp.maximum(jnp.arange(s.length), 1).astype(others.dtype)
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
    }


def trial(s: Backcopy, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch; losses and what the head does along it."""
    k_law, k_init, k_data, k_held = jax.random.split(key, 4)
    law = backcopy.law(k_law, s.vocabulary, s.triggers, dtype=s.dtype)

    def batch(key: PRNGKeyArray, count: int) -> Int[Array, "b T1"]:
        return jax.vmap(lambda k: backcopy.draw(k, law, s.length + 1))(jax.random.split(key, count))

    def loss(params: model.Params, tokens: Int[Array, "b T1"]) -> Float[Array, ""]:
        return jnp.mean(nats(s, params, tokens)[0][:, FIRST:])

    tx = train.switched(s.optimizer, {"adam": optax.adam(s.lr), "sgd": optax.sgd(s.lr)})
    step = train.make_step(loss, tx, lambda i: batch(jax.random.fold_in(k_data, i), s.batch))
    held = batch(k_held, HELD_OUT)
    start = train.init(tx, model.init(k_init, s.vocabulary, s.length, s.width, s.hidden, s.dtype))
    last, curves = train.record(step, start, lambda t: observe(s, law, t.params, held), samples=s.samples, every=s.every)
    steps = s.every * jnp.arange(s.samples + 1)
    names = {name: jd.named(curve, "step") for name, curve in curves.items()}
    uniform = jnp.mean(1 / jnp.arange(FIRST + 1, s.length + 1).astype(s.dtype))
    return jd.observables(
        predicted={},
        measured={name: names[name] for name in ("idle", "copying", "drain", "margin", "share")},
        recorded={name: names[name] for name in ("excess", "copy_loss")}
        | {"uniform": uniform, "steps": jd.named(steps.astype(s.dtype), "step")},
        status=train.finite_status(last.params),
    )
