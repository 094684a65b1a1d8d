r"""The trained networks and their losses: what is differentiated by ``jax.grad``. Nothing here knows a formula of the theory.

A chain of layers :math:`f_l = K_l(W_l f_{l-1})`, the last without K. Letters: w (L, d, d) weights; x, y (N, d) inputs and targets;
L layers, d width, N points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import train

POINTS = 16
LAYERS = ("relu", "leaky", "bias", "layernorm", "softmax")
"""Kinds of layers, reversible ones first; ``bias``: ReLU with biases, ``softmax``: each entry times the softmax of all."""


def _layer_norm(z: Float[Array, " d"]) -> Float[Array, " d"]:
    z = z - jnp.mean(z)
    return z * jax.lax.rsqrt(jnp.mean(jnp.square(z)) + 1e-6)


def chain(
    w: Float[Array, "L d d"], x: Float[Array, " d"], kind: Int[Array, ""] | int, bias: Float[Array, "L d"]
) -> Float[Array, " d"]:
    """The network's output at one point; ``kind`` is the place of its layers in :data:`LAYERS`."""
    branches = (
        jax.nn.relu,
        lambda z: jnp.where(z > 0, z, 0.1 * z),
        jax.nn.relu,
        _layer_norm,
        lambda z: z.shape[-1] * jax.nn.softmax(z) * z,
    )
    for i in range(w.shape[0]):
        x = w[i] @ x
        if i < w.shape[0] - 1:
            x = jax.lax.switch(kind, branches, x + jnp.where(kind == LAYERS.index("bias"), 1.0, 0.0) * bias[i])
    return x


def init(key: PRNGKeyArray, layers: int, width: int) -> Float[Array, "L d d"]:
    """Weights N(0, 2 / d), in float64."""
    return jax.random.normal(key, (layers, width, width), jnp.float64) * (2 / width) ** 0.5


def squared(
    w: Float[Array, "L d d"], x: Float[Array, "N d"], y: Float[Array, "N d"], kind: Int[Array, ""] | int, bias: Float[Array, "L d"]
) -> Float[Array, ""]:
    r"""Half the mean squared error, :math:`\frac1N \sum_i \frac12 \|y_i - f(x_i)\|^2`."""
    out = jax.vmap(lambda x: chain(w, x, kind, bias))(x)
    return 0.5 * jnp.mean(jnp.sum(jnp.square(y - out), -1))


def cross_entropy(w: Float[Array, "L d d"], x: Float[Array, "N d"], y: Float[Array, "N d"]) -> Float[Array, ""]:
    """Mean cross-entropy of one-hot targets under the outputs of a ReLU chain."""
    zero = jnp.zeros(w.shape[:2], w.dtype)
    out = jax.vmap(lambda x: chain(w, x, 0, zero))(x)
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(out), -1))


def three_shapes(w: dict[str, Float[Array, "_ _"]], x: Float[Array, "N d"], y: Float[Array, "N d"]) -> Float[Array, ""]:
    """Half the mean squared error of two ReLU layers, of the matrices "tall" and "wide", and a linear one, "square"."""
    hidden = jax.nn.relu(jax.nn.relu(x @ w["tall"].T) @ w["wide"].T)
    return 0.5 * jnp.mean(jnp.sum(jnp.square(y - hidden @ w["square"].T), -1))


def linear_loss(
    w: Float[Array, "m n"], a: Float[Array, "m n"], b: Float[Array, "N m m"], c: Float[Array, "N n n"]
) -> Float[Array, ""]:
    r"""The quadratic whose negative gradient is :math:`A - \frac1N \sum_i B_i W C_i`, for symmetric B and C."""
    return 0.5 * jnp.mean(jnp.einsum("imk,kl,iln,mn->i", b, w, c, w)) - jnp.sum(a * w)


def row_loss(w: Float[Array, "m n"], target: Float[Array, " n"], noise: Float[Array, "m-1 n"]) -> Float[Array, ""]:
    r"""Loss :math:`\frac12 \|w_1 - w^*\|^2 + \sum_{j \ge 2} \xi_j^\top w_j`: rows 2 to m have no gradient but noise."""
    return 0.5 * jnp.sum(jnp.square(w[0] - target)) + jnp.sum(noise * w[1:])


def points(key: PRNGKeyArray, width: int, dtype: str) -> tuple[Array, Array]:
    """Gaussian inputs and targets."""
    k_x, k_y = jax.random.split(key)
    x, y = (jax.random.normal(k, (POINTS, width), jnp.float64).astype(dtype) for k in (k_x, k_y))
    return x, y


def trained(tx: optax.GradientTransformation, loss: Callable[..., Any], start: PyTree, steps: int) -> PyTree:
    """The parameters after training."""
    step = train.make_step(loss, tx)
    return jax.lax.fori_loop(0, steps, lambda _, state: step(state), train.init(tx, start)).params
