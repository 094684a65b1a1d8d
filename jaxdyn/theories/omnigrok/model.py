r"""Teacher and student of Omnigrok: tanh networks with two hidden layers, one trained on the other's outputs.

Weights and biases start uniform within alpha over the root of the fan-in; the teacher has alpha = 1. The student minimises the
mean squared error with AdamW, whose decay multiplies all weights by 1 - lr * decay in every step, or on a sphere: rescaled to its
first norm after every step. Source: arXiv:2210.01117, sections 2 and 3. Letters: n samples, i inputs, o outputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn.linalg import dense

Layers = tuple[tuple[Float[Array, "_ _"], Float[Array, " _"]], ...]  # weights and biases; every layer has its own sizes
Scalar = float | Float[Array, ""]


class Data(NamedTuple):
    """Inputs and the teacher's outputs, for training and for testing, and the variance of the latter."""

    x: Float[Array, "n i"]
    y: Float[Array, "n o"]
    x_test: Float[Array, "m i"]
    y_test: Float[Array, "m o"]
    variance: Float[Array, ""]


def init(key: PRNGKeyArray, sizes: tuple[int, ...], alpha: Scalar) -> Layers:
    """Weights and biases of every layer in float32."""
    layers = []
    for k, (a, b) in zip(jax.random.split(key, len(sizes) - 1), zip(sizes[:-1], sizes[1:], strict=True), strict=True):
        both = jax.random.uniform(k, (a + 1, b), jnp.float32, -1, 1) * jnp.asarray(alpha / a**0.5, jnp.float32)
        layers.append((both[:-1], both[-1]))
    return tuple(layers)


def apply(layers: Layers, x: Float[Array, "n i"]) -> Float[Array, "n o"]:
    """The network's outputs."""
    for w, b in layers[:-1]:
        x = jnp.tanh(dense(x, w) + b)
    w, b = layers[-1]
    return dense(x, w) + b


def error(layers: Layers, x: Float[Array, "n i"], y: Float[Array, "n o"]) -> Float[Array, ""]:
    """Mean squared error."""
    return jnp.mean(jnp.square(apply(layers, x) - y))


def norm(layers: Any) -> Float[Array, ""]:
    """The 2-norm of all weights and biases together."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(layers)))


def rescale(layers: Layers, size: Float[Array, ""]) -> Layers:
    """The same direction at another norm."""
    factor = size / norm(layers)
    return jax.tree.map(lambda leaf: factor * leaf, layers)


def sample(key: PRNGKeyArray, sizes: tuple[int, ...], count: int, tests: int) -> Data:
    """Standard normal inputs and a random teacher's outputs."""
    k_teacher, k_train, k_test = jax.random.split(key, 3)
    teacher = init(k_teacher, sizes, 1.0)
    x, z = (jax.random.normal(k, (n, sizes[0]), jnp.float32) for k, n in ((k_train, count), (k_test, tests)))
    y_test = apply(teacher, z)
    return Data(x, apply(teacher, x), z, y_test, jnp.mean(jnp.var(y_test, 0)))
