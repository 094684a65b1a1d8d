r"""The trained networks and their losses: what is differentiated by ``jax.grad``. Nothing here knows a formula of the theory.

Letters: w1 (h, i), w2 (o, h) weights; m (o, i) the target :math:`\Sigma`; i inputs, h hidden, o outputs; d size; n points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Scalar = float | Float[Array, ""]


class Linear(NamedTuple):
    """A two-layer linear network ``x -> w2 w1 x``."""

    w1: Float[Array, "h i"]
    w2: Float[Array, "o h"]


class Tanh(NamedTuple):
    """A tanh network with two hidden layers and a scalar output, as lists of weights and biases."""

    weights: tuple[Float[Array, "b a"], ...]
    biases: tuple[Float[Array, " b"], ...]


def linear_loss(params: Linear, m: Float[Array, "o i"], decay: Scalar = 0.0) -> Float[Array, ""]:
    r"""Loss :math:`\tfrac12\|\Sigma - W_2 W_1\|_F^2 + \tfrac\lambda2\|\theta\|^2` (whitened inputs)."""
    fit = jnp.sum(jnp.square(m - params.w2 @ params.w1))
    return 0.5 * fit + 0.5 * decay * sum(jnp.sum(jnp.square(w)) for w in params)


def regression_loss(params: Linear, batch: tuple[Float[Array, "b i"], Float[Array, "b o"]]) -> Float[Array, ""]:
    r"""Loss of one mini-batch, :math:`\tfrac12\,\mathrm{mean}_b\|y_b - W_2 W_1 x_b\|^2`."""
    x, y = batch
    return 0.5 * jnp.mean(jnp.sum(jnp.square(y - x @ params.w1.T @ params.w2.T), -1))


def deep_product(weights: Sequence[Float[Array, "d d"]]) -> Float[Array, "d d"]:
    """The network's map: the product of the weights, the first acting first."""
    product = weights[0]
    for w in weights[1:]:
        product = w @ product
    return product


def deep_loss(weights: Sequence[Float[Array, "d d"]], m: Float[Array, "d d"]) -> Float[Array, ""]:
    r"""Loss :math:`\tfrac12\|\Sigma - W_N\cdots W_1\|_F^2`."""
    return 0.5 * jnp.sum(jnp.square(m - deep_product(weights)))


def factor_loss(u: Float[Array, "d r"], m: Float[Array, "d d"], offset: Float[Array, "d r"]) -> Float[Array, ""]:
    r"""Loss :math:`\tfrac14\|M - U(U + D)^\top\|_F^2`; with offset D = 0 its gradient flow is :math:`\dot U = (M - UU^\top)U`."""
    return 0.25 * jnp.sum(jnp.square(m - u @ (u + offset).T))


def pair_loss(params: tuple[Float[Array, ""], Float[Array, ""]]) -> Float[Array, ""]:
    r"""Loss :math:`\tfrac12(uv-1)^2`."""
    u, v = params
    return 0.5 * jnp.square(u * v - 1)


def quadratic_loss(x: Float[Array, " d"], noise: Float[Array, " d"], h: Float[Array, "d d"]) -> Float[Array, ""]:
    r"""Loss :math:`\tfrac12 x^\top H x + \xi^\top x`: its gradient is the exact one plus the noise :math:`\xi`."""
    return 0.5 * x @ h @ x + noise @ x


def tanh_init(key: PRNGKeyArray, sizes: Sequence[int]) -> Tanh:
    r"""Weights :math:`N(0, 1/\text{fan-in})` in float64, biases zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    weights = tuple(jax.random.normal(k, s, jnp.float64) / s[1] ** 0.5 for k, s in zip(keys, shapes, strict=True))
    return Tanh(weights, tuple(jnp.zeros(b, jnp.float64) for b, _ in shapes))


def tanh_apply(params: Tanh, x: Float[Array, "n i"]) -> Float[Array, " n"]:
    """The network's scalar output at each point."""
    for w, b in zip(params.weights[:-1], params.biases[:-1], strict=True):
        x = jnp.tanh(x @ w.T + b)
    return (x @ params.weights[-1].T + params.biases[-1])[:, 0]


def tanh_loss(params: Tanh, x: Float[Array, "n i"], y: Float[Array, " n"]) -> Float[Array, ""]:
    """Half the mean squared error."""
    return 0.5 * jnp.mean(jnp.square(tanh_apply(params, x) - y))
