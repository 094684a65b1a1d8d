"""A network trained by Adam on a share of the sums modulo p: softmax or StableMax, a precision, a projection of gradients.

The cross-entropy alone is in the chosen precision, as in the paper's figure 2; weights are in float32. Records are measured in
float64. Letters as in ``model.py``; steps of Adam have the paper's constants.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.prieto import dynamics, model

SAMPLES = 20  # records of a run
KINDS = ("float16", "float32")  # in which zeros are counted


@jd.setting
class Arithmetic:
    """A network trained on full batches of part of the pairs.

    Args:
        loss: "softmax" or "stablemax" before the cross-entropy.
        precision: in which the cross-entropy and its derivative are computed.
        projection: "none"; "weights": gradients are orthogonal to their matrix; "random": to a random matrix instead.
        lr: Adam's rate.
        decay: weight decay, decoupled.
        steps: of training.
        modulus: p.
        nodes: m.
        share: of the pairs that are trained on.
    """

    loss: jd.Code = jd.code("softmax", "stablemax")
    precision: jd.Code = jd.code("float64", "float32", "float16")
    projection: jd.Code = jd.code("none", "weights", "random")
    lr: jd.Swept = jd.field(0.01, above=0)
    decay: jd.Swept = jd.field(0.0, at_least=0)
    steps: jd.Swept = jd.field(2000, at_least=SAMPLES, whole=True)
    modulus: int = jd.field(17, at_least=2)
    nodes: int = jd.field(64, at_least=1)
    share: float = 0.6

    def __post_init__(self) -> None:
        """Refuse shares that leave no pair for training or for testing."""
        jd.require(self, 1 <= round(self.share * self.modulus**2) < self.modulus**2, "share leaves pairs for both sides", "share")


Batch = tuple[Int[Array, "..."], Int[Array, "..."], Int[Array, "..."]]


def make_step(s: Arithmetic, seen: Batch, key: PRNGKeyArray) -> tuple[Callable[[train.State], train.State], train.State]:
    """One step of training on the pairs that are seen, and its start."""
    a, b, answers = seen
    lr, decay = (jnp.asarray(x, jnp.float32) for x in (s.lr, s.decay))
    tx = optax.chain(optax.scale_by_adam(b1=0.9, b2=0.99, eps=1e-25), optax.add_decayed_weights(decay), optax.scale(-lr))
    k_start, k_random = jax.random.split(key)
    start = model.init(k_start, s.modulus, s.nodes)
    random = model.init(k_random, s.modulus, s.nodes)

    def rounded(kind: str) -> Callable[[Array], Float[Array, ""]]:
        return lambda z: jnp.mean(model.losses(z.astype(kind), answers).astype(jnp.float32))

    def loss(weights: model.Weights) -> Float[Array, ""]:
        z = model.outputs(weights, a, b)
        z = jnp.where(s.loss == "stablemax", model.signed_log(z), z)
        return jax.lax.switch(s.precision.index, [rounded(kind) for kind in s.precision.names], z)

    def project(gradient: Array, weight: Array, other: Array) -> Array:
        along = jnp.where(s.projection == "weights", weight, other)
        return jnp.where(s.projection == "none", gradient, model.orthogonal(gradient, along))

    def step(state: train.State) -> train.State:
        return train.descend(tx, state, jax.tree.map(project, jax.grad(loss)(state.params), state.params, random))

    return step, train.init(tx, start)


def observe(s: Arithmetic, weights: model.Weights, seen: Batch, unseen: Batch) -> dict[str, Float[Array, "*k"]]:
    """Accuracies, loss, zeros and their bounds, cosine of minus the gradient with the weights, logits; all in float64 but zeros."""
    # logits, by exact weights and by those in float32
    a, b, answers = seen
    exact = tuple(w.astype(jnp.float64) for w in weights)
    z, low = model.outputs(exact, a, b), model.outputs(weights, a, b)
    right = jnp.argmax(model.outputs(exact, *unseen[:2]), 1) == unseen[2]

    def loss(w: model.Weights) -> Float[Array, ""]:
        return jnp.mean(model.losses(model.outputs(w, a, b), answers))

    # the gradient's direction, and the losses that are zero
    gradient = jax.grad(loss)(exact)
    unit = optax.tree.scale(1 / jnp.maximum(optax.tree.norm(gradient), 1e-300), gradient)
    zeros = [model.losses(low.astype(kind), answers) == 0 for kind in KINDS]

    def shares(flags: list[Array]) -> Float[Array, " bits"]:
        return jnp.mean(jnp.stack(flags).astype(jnp.float64), 1)

    return {
        "train": jnp.mean((jnp.argmax(z, 1) == answers).astype(jnp.float64)),
        "test": jnp.mean(right.astype(jnp.float64)),
        "loss": loss(exact),
        "zeros": shares(zeros),
        "least": shares([dynamics.certain(z, answers, kind) for kind in KINDS]),
        "most": shares([dynamics.possible(z, answers, kind) for kind in KINDS]),
        "coarse_least": shares([dynamics.certain(z, answers, kind, 1) for kind in KINDS]),
        "coarse_most": shares([dynamics.possible(z, answers, kind, 1) for kind in KINDS]),
        "underflow": shares([dynamics.underflow(z, answers, kind) for kind in KINDS]),
        "stable_zeros": shares([model.losses(model.signed_log(low).astype(kind), answers) == 0 for kind in KINDS]),
        "cosine": -optax.tree.vdot(unit, exact) / optax.tree.norm(exact),
        "norm": optax.tree.norm(exact),
        "logits": z,
    }


def trial(s: Arithmetic, key: PRNGKeyArray) -> jd.Observables:
    """Zeros of the loss along training and their bounds; accuracy on unseen pairs; how the gradient points along the weights."""
    # pairs for training and for testing
    k_pairs, k_start = jax.random.split(key)
    order = jax.random.permutation(k_pairs, s.modulus**2)
    a, b, c = (x[order] for x in model.pairs(s.modulus))
    count = round(s.share * s.modulus**2)
    seen, unseen = (a[:count], b[:count], c[:count]), (a[count:], b[count:], c[count:])
    # the network along training
    step, start = make_step(s, seen, k_start)
    apart = jnp.round(jnp.asarray(s.steps, jnp.float32) / SAMPLES).astype(jnp.int32)
    last, curves = train.record(step, start, lambda state: observe(s, state.params, seen, unseen), samples=SAMPLES, every=apart)
    # how far the logits keep their direction in the second half
    logits = curves.pop("logits").reshape(SAMPLES + 1, -1)
    half = SAMPLES // 2
    direction = jnp.vdot(logits[half], logits[-1]) / (jnp.linalg.norm(logits[half]) * jnp.linalg.norm(logits[-1]))
    one = jnp.ones((), jnp.float64)
    return jd.observables(
        predicted={"zeros": jd.named(curves["least"], "record bits"), "test": one, "cosine": one},
        measured={
            "zeros": jd.named(curves["zeros"], "record bits"),
            "test": curves["test"][-1],
            "cosine": curves["cosine"][-1],
        },
        recorded={
            "most": jd.named(curves["most"], "record bits"),
            "underflow": jd.named(curves["underflow"], "record bits"),
            **{name: jd.named(curves[name], "record bits") for name in ("coarse_least", "coarse_most")},
            "stable_zeros": jd.named(curves["stable_zeros"], "record bits"),
            "chance": jnp.asarray(1 / s.modulus, jnp.float64),
            "any_direction": jnp.asarray(sum(w.size for w in last.params) ** -0.5, jnp.float64),
            "kept": direction,
            "grown": jnp.linalg.norm(logits[-1]) / jnp.linalg.norm(logits[half]),
            **{f"{name}_curve": jd.named(curves[name], "record") for name in ("train", "test", "loss", "cosine", "norm")},
            "at": jd.named(apart * jnp.arange(SAMPLES + 1, dtype=jnp.int32), "record"),
        },
        coords={"bits": tuple(dynamics.SIGNIFICANT[kind] for kind in KINDS)},
        status=train.finite_status(last.params),
    )
