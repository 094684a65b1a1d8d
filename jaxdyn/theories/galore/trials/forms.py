"""Gradients of trained chains of layers against their form, and of the cross-entropy at small logits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.dynamics import gradient

__all__ = ["Chain", "Logits", "chain_trial", "logits_trial"]

POINTS = 8


@jd.setting
class Chain:
    """A chain of layers, trained by gradient descent on random targets."""

    layer: jd.Code = jd.code(*model.LAYERS)
    lr: jd.Swept = 0.01
    depth: int = 3
    width: int = 6
    steps: int = 100

    def __post_init__(self) -> None:
        jd.require(self, self.lr > 0, "lr is positive", "lr")
        jd.require(self, self.depth >= 2, "depth is at least 2", "depth")
        jd.require(self, self.width >= 2 and self.steps >= 1, "width is at least 2, steps at least 1", "width", "steps")


@jd.setting
class Logits:
    """A random ReLU chain whose logits have the standard deviation ``size`` times ``amplify``."""

    size: jd.Swept = 0.01
    amplify: jd.Swept = 1.0
    depth: int = 3
    classes: int = 10

    def __post_init__(self) -> None:
        jd.require(self, self.size > 0, "size is positive", "size")
        jd.require(self, self.amplify > 0, "amplify is positive", "amplify")
        jd.require(self, self.depth >= 2 and self.classes >= 2, "both are at least 2", "depth", "classes")


def chain_trial(s: Chain, key: PRNGKeyArray) -> jd.Observables:
    """The gradient of every layer after training, by differentiation and by the form."""
    k_w, k_x, k_y, k_b = jax.random.split(key, 4)
    x, y = (jax.random.normal(k, (POINTS, s.width), jnp.float64) for k in (k_x, k_y))
    bias = jax.random.normal(k_b, (s.depth, s.width), jnp.float64)

    def loss(w: jax.Array) -> jax.Array:
        return model.squared(w, x, y, s.layer.index, bias)

    start = model.init(k_w, s.depth, s.width)
    tx = optax.sgd(s.lr)
    step = train.make_step(loss, tx)
    trained = jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), train.init(tx, start)).params
    shift = jnp.where(s.layer == "bias", 1.0, 0.0) * bias
    a, b = gradient.squared_parts(trained, x, y, s.layer.index, shift)
    return jd.observables(
        predicted={"gradient": jd.named(a - b, "place row col")},
        measured={"gradient": jd.named(-jax.grad(loss)(trained), "place row col")},
        recorded={"targets_alone": jd.named(a, "place row col"), "loss": loss(trained) / loss(start)},
        status=train.finite_status(trained),
    )


def logits_trial(s: Logits, key: PRNGKeyArray) -> jd.Observables:
    """Gradients of the cross-entropy, their form, and the best gamma."""
    k_w, k_x, k_y = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (POINTS, s.classes), jnp.float64)
    y = jax.nn.one_hot(jax.random.randint(k_y, (POINTS,), 0, s.classes), s.classes, dtype=jnp.float64)
    w = model.init(k_w, s.depth, s.classes)
    zero = jnp.zeros((s.depth, s.classes), jnp.float64)
    out = jax.vmap(lambda x: model.chain(w, x, 0, zero))(x)
    w = w.at[-1].multiply(s.size * s.amplify / jnp.std(out))
    a, b = gradient.softmax_parts(w, x, y)
    g = -jax.grad(model.cross_entropy)(w, x, y)
    return jd.observables(
        predicted={"linear": jd.named(b, "place row col")},
        measured={"linear": jd.named(a - g, "place row col")},
        recorded={"gradient": jd.named(g, "place row col")},
    )
