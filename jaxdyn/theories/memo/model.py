"""Multilayer perceptrons with ReLUs, of which a part of the hidden units can be masked, and the conditions of their data.

Letters: n images, d pixels, f hidden units, K classes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.linalg import dense

Layer = tuple[Float[Array, "i o"], Float[Array, " o"]]
CONDITIONS = ("true", "random labels", "shuffled pixels", "random pixels", "gaussian")


def init(key: PRNGKeyArray, sizes: tuple[int, ...], dtype: Any = "float32") -> list[Layer]:
    """He's start: normal entries with variance 2 over a layer's inputs, biases zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = pairwise(sizes)
    return [(jax.random.normal(k, s, dtype) * (2 / s[0]) ** 0.5, jnp.zeros(s[1], dtype)) for k, s in zip(keys, shapes, strict=True)]


def apply(params: list[Layer], x: Float[Array, "n d"], active: Any) -> Float[Array, "n K"]:
    """Logits; only the first ``active`` units of every hidden layer are on."""
    for w, b in params[:-1]:
        x = jnp.where(jnp.arange(b.size) < active, jax.nn.relu(dense(x, w) + b), 0)
    w, b = params[-1]
    return dense(x, w) + b


def loss(params: list[Layer], x: Float[Array, "n d"], y: Int[Array, " n"], active: Any) -> Float[Array, ""]:
    """Cross-entropy, mean over images."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(apply(params, x, active)), y[:, None], -1)
    return -jnp.mean(chosen)


def hits(params: list[Layer], x: Float[Array, "n d"], y: Int[Array, " n"], active: Any) -> Float[Array, ""]:
    """Share of images whose class has the largest logit."""
    return jnp.mean(jnp.argmax(apply(params, x, active), -1) == y, dtype=x.dtype)


def condition(
    key: PRNGKeyArray, x: Float[Array, "n d"], y: Int[Array, " n"], kind: Any, share: Any, classes: int
) -> tuple[Float[Array, "n d"], Int[Array, " n"]]:
    """Images and labels in one of the conditions (a ``jd.Code``), with a ``share`` of the labels sampled anew.

    "shuffled pixels" has one permutation of the pixels for all images, "random pixels" one an image, "gaussian" has noise with
    the images' mean and standard deviation in their place.
    """
    k_label, k_pick, k_one, k_each, k_noise = jax.random.split(key, 5)
    n, d = x.shape
    order = jnp.argsort(jax.random.uniform(k_each, (n, d)), -1)
    images = {
        "shuffled pixels": x[:, jax.random.permutation(k_one, d)],
        "random pixels": jnp.take_along_axis(x, order, -1),
        "gaussian": jnp.mean(x) + jnp.std(x) * jax.random.normal(k_noise, x.shape, x.dtype),
    }
    for name, changed in images.items():
        x = jnp.where(kind == name, changed, x)
    other = jax.random.randint(k_label, (n,), 0, classes, y.dtype)
    anew = jax.random.uniform(k_pick, (n,)) < jnp.where(kind == "random labels", 1.0, share)
    return x, jnp.where(anew, other, y)
