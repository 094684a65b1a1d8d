"""A perceptron trained on digits long after it fits them; how far its last hidden layer has collapsed along training.

Full-batch gradient descent with momentum and weight decay. Images of classes out of use have weight zero, so that any number of
classes shares a program; imbalance enters as the weights of images in the loss.
"""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import digits
from jaxdyn.linalg import dense
from jaxdyn.theories.collapse import measures
from jaxdyn.theories.collapse.dynamics import minimum

__all__ = ["Perceptron", "trial"]

Layers = list[tuple[Float[Array, "i o"], Float[Array, " o"]]]


@jd.setting
class Perceptron:
    """Data and training.

    Args:
        classes: K, the first so many digits.
        imbalance: weight of an image of the first half of the classes over that of the others.
        lr: step size; momentum is 0.9.
        decay: weight decay, in the gradient.
        every: steps between two records.
        records: after the start.
        each, hidden: images a class, units of both hidden layers.
    """

    classes: jd.Swept = 10.0
    imbalance: jd.Swept = 1.0
    lr: jd.Swept = 0.05
    decay: jd.Swept = 5e-3
    every: jd.Swept = 250.0
    records: int = 8
    each: int = 15
    hidden: int = 64
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, 2 <= self.classes <= digits.CLASSES, f"classes is from 2 to {digits.CLASSES}", "classes")
        jd.require(self, 2 <= self.each <= 170, "each is from 2 to 170", "each")
        for name in ("imbalance", "lr", "every"):
            jd.require(self, getattr(self, name) > 0, f"{name} is positive", name)
        jd.require(self, self.decay >= 0, "decay is not negative", "decay")
        jd.require(self, self.records >= 1 and self.hidden >= 1, "both are at least 1", "records", "hidden")


def features(params: Layers, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
    """The last hidden layer."""
    for w, b in params[:-1]:
        x = jax.nn.relu(dense(x, w) + b)
    return x


def drawn(s: Perceptron, key: PRNGKeyArray) -> tuple[Array, Array]:
    """So many images of every class, and their labels."""
    x, y = digits.load()
    places = np.argsort(y, kind="stable")
    first = np.searchsorted(y[places], np.arange(digits.CLASSES))
    count = jnp.asarray(np.bincount(y))
    order = jnp.argsort(jnp.where(jnp.arange(183) < count[:, None], jax.random.uniform(key, (digits.CLASSES, 183)), 2.0), -1)
    chosen = jnp.asarray(places)[jnp.asarray(first)[:, None] + order[:, : s.each]].ravel()
    return jnp.asarray(x)[chosen].astype(s.dtype), jnp.repeat(jnp.arange(digits.CLASSES), s.each)


def trial(s: Perceptron, key: PRNGKeyArray) -> jd.Observables:
    """Measures of collapse of the last hidden layer along training."""
    k_data, k_init = jax.random.split(key)
    x, y = drawn(s, k_data)
    index = jnp.arange(digits.CLASSES)
    used = index < s.classes
    weight = jnp.where(used, jnp.where(index < s.classes / 2, s.imbalance, 1.0), 0.0)[y]
    weight = (weight / jnp.sum(weight)).astype(x.dtype)
    sizes = (digits.PIXELS, s.hidden, s.hidden, digits.CLASSES)
    keys = jax.random.split(k_init, len(sizes) - 1)
    start = [
        (jax.random.normal(k, shape, s.dtype) * (2 / shape[0]) ** 0.5, jnp.zeros(shape[1], s.dtype))
        for k, shape in zip(keys, pairwise(sizes), strict=True)
    ]

    def logits(params: Layers) -> Float[Array, "n K"]:
        w, b = params[-1]
        return jnp.where(used, dense(features(params, x), w) + b, -1e9)

    def loss(params: Layers) -> Float[Array, ""]:
        return -jnp.sum(weight * jnp.take_along_axis(jax.nn.log_softmax(logits(params)), y[:, None], -1)[:, 0])

    decayed = optax.stateless(lambda g, p: jax.tree.map(lambda a, w: (a + s.decay * w).astype(a.dtype), g, p))
    tx = optax.chain(decayed, optax.sgd(s.lr, momentum=0.9))
    step = train.make_step(loss, tx)

    def observe(state: train.State) -> dict[str, Array]:
        p = state.params
        z = logits(p)
        m = measures.measure(features(p, x), y, p[-1][0].T, z, used)
        hits = jnp.sum(jnp.where(used[y], jnp.argmax(z, -1) == y, 0)) / jnp.sum(used[y])
        return m._asdict() | {"right": hits.astype(x.dtype)}

    every = jnp.round(s.every).astype(jnp.int32)
    last, curves = train.record(step, train.init(tx, start), observe, samples=s.records, every=every)
    names = {name: jd.named(curve, "step") for name, curve in curves.items()}
    cosine = minimum.cosine(s.classes)
    return jd.observables(
        predicted={"cosines": jd.named(jnp.stack([cosine, cosine]), "end")},
        measured={
            "cosines": jd.named(jnp.stack([curves["low"][-1], curves["high"][-1]]).astype(jnp.float64), "end"),
            **{name: names[name] for name in ("within", "dual", "spread", "nearest")},
        },
        recorded={
            "right": names["right"],
            "low": names["low"],
            "high": names["high"],
            "start_cosines": jd.named(jnp.stack([curves["low"][0], curves["high"][0]]).astype(jnp.float64), "end"),
            "steps": jd.named((every * jnp.arange(s.records + 1)).astype(s.dtype), "step"),
        },
        status=train.finite_status(last.params),
        coords={"end": ("least", "largest")},
    )
