"""Perceptrons trained on digits with true labels, random labels, and changed pixels: how fast they fit, and what they know after.

Every run differs in traced numbers alone. The loss is that of all training images at every step (Adam). "Measured" are training
and test accuracy along training and the first record with every training image right.
Source: arXiv:1611.03530, sections 2 and 3, on a smaller data set.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import digits
from jaxdyn.theories.memo import model


@jd.setting
class Memory:
    """Data and training.

    Args:
        condition: of images and labels (``model.CONDITIONS``).
        corruption: share of training labels that are sampled anew.
        clashing: share of training images that stand in pairs: two of the same image, the second with the next class as its label.
        active: hidden units in use, at most ``hidden``.
        lr: rate of Adam.
        decay: decoupled weight decay, times the rate.
        noise: standard deviation of noise on the images, new at every step.
        every: steps between two records.
        records: after the start.
        layers, hidden, images: hidden layers, their units, training images.
    """

    condition: jd.Code = jd.code(*model.CONDITIONS)
    corruption: jd.Swept = jd.field(0.0, at_least=0, at_most=1, role="treatment")
    clashing: jd.Swept = jd.field(0.0, at_least=0, at_most=1)
    active: jd.Swept = jd.field(128.0, at_least=1)
    lr: jd.Swept = jd.field(3e-3, above=0)
    decay: jd.Swept = jd.field(0.0, at_least=0, role="treatment")
    noise: jd.Swept = jd.field(0.0, at_least=0, role="treatment")
    every: jd.Swept = jd.field(10.0, at_least=1, whole=True)
    records: int = jd.field(20, at_least=1)
    layers: int = jd.field(1, at_least=1)
    hidden: int = 128
    images: int = jd.field(300, at_least=10, at_most=1697)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.active <= self.hidden, "active is at most hidden", "active", "hidden")


def data(s: Memory, key: PRNGKeyArray) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Training and test images with their labels; test images have the condition's pixels and their true labels."""
    k_split, k_condition = jax.random.split(key)
    x, y = (jnp.asarray(part) for part in digits.load())
    order = jax.random.permutation(k_split, y.size)
    x, y = x[order].astype(s.dtype), y[order]
    changed, labels = model.condition(k_condition, x, y, s.condition, s.corruption, digits.CLASSES)
    n = s.images
    twin = (jnp.arange(n) % 2 == 1) & (jnp.arange(n) < s.clashing * n)
    before = jnp.maximum(jnp.arange(n) - 1, 0)
    images = jnp.where(twin[:, None], changed[before], changed[:n])
    named = jnp.where(twin, (labels[before] + 1) % digits.CLASSES, labels[:n])
    return (images, named), (changed[n:], y[n:])


@jd.imports("sklearn", install="jaxdyn[suite]")
def trial(s: Memory, key: PRNGKeyArray) -> jd.Observables:
    """Accuracies along training."""
    # data and optimizer
    k_data, k_init, k_noise = jax.random.split(key, 3)
    (x, y), (x_test, y_test) = data(s, k_data)
    tx = optax.chain(
        optax.scale_by_adam(),
        optax.stateless(lambda u, p: jax.tree.map(lambda g, w: (-s.lr * (g + s.decay * w)).astype(g.dtype), u, p)),
    )

    def loss(params: list[model.Layer], noise: Array) -> Array:
        return model.loss(params, x + noise, y, s.active)

    def noise(i: Array) -> Array:
        return (s.noise * jax.random.normal(jax.random.fold_in(k_noise, i), x.shape)).astype(x.dtype)

    # training
    step = train.make_step(loss, tx, noise)
    sizes = (digits.PIXELS, *[s.hidden] * s.layers, digits.CLASSES)

    def observe(state: train.State) -> tuple[Array, ...]:
        p = state.params
        return model.hits(p, x, y, s.active), model.hits(p, x_test, y_test, s.active), model.loss(p, x, y, s.active)

    every = jnp.round(s.every).astype(jnp.int32)
    start = train.init(tx, model.init(k_init, sizes, s.dtype))
    last, (right, test, losses) = train.record(step, start, observe, samples=s.records, every=every)
    # the first record with every label right
    done = right >= 1
    first = jnp.where(jnp.any(done), jnp.argmax(done), s.records + 1) * every
    return jd.observables(
        measured={
            "right": right[-1],
            "test": test[-1],
            "first": first.astype(s.dtype),
            "start": right[0],
        },
        recorded={
            "train": jd.named(right, "step"),
            "tested": jd.named(test, "step"),
            "losses": jd.named(losses, "step"),
            "steps": jd.named((every * jnp.arange(s.records + 1)).astype(s.dtype), "step"),
            "chance": jnp.asarray(1 / digits.CLASSES, s.dtype),
            "test_start": test[0],
            "weights": jnp.asarray(sum(np.prod(a) + a[1] for a in zip(sizes, sizes[1:], strict=False)), s.dtype),
        },
        status=train.finite_status(last.params),
    )
