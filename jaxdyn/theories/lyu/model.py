r"""Two-layer diagonal linear network of Lyu et al., trained by regression with weight decay.

.. math:: f(x) = \langle w, x\rangle, \quad w = u^{\odot 2} - v^{\odot 2}, \qquad
          L_\lambda = \frac1n\sum_i\bigl(f(x_i) - y_i\bigr)^2 + \frac\lambda2\bigl(\|u\|^2 + \|v\|^2\bigr)

It starts at u = v = alpha, where the output is zero. Source: arXiv:2311.18817, equations 3 and 4. Letters: d inputs, n samples.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Scalar = float | Float[Array, ""]


class Params(NamedTuple):
    """Both halves of the network."""

    u: Float[Array, " d"]
    v: Float[Array, " d"]


class Data(NamedTuple):
    """Samples, their targets, and the weight that made them."""

    x: Float[Array, "n d"]
    y: Float[Array, " n"]
    truth: Float[Array, " d"]


def init(alpha: Scalar, inputs: int) -> Params:
    """All weights alpha."""
    start = jnp.full(inputs, alpha, jnp.float64)
    return Params(start, start)


def weight(params: Params) -> Float[Array, " d"]:
    """The effective weight w."""
    return jnp.square(params.u) - jnp.square(params.v)


def loss(params: Params, data: Data, decay: Scalar) -> Float[Array, ""]:
    """The regularised loss."""
    fit = jnp.mean(jnp.square(data.x @ weight(params) - data.y))
    return fit + decay / 2 * (jnp.sum(jnp.square(params.u)) + jnp.sum(jnp.square(params.v)))


def sample(key: PRNGKeyArray, count: int, inputs: int, active: int) -> Data:
    """Gaussian inputs of variance 2/d, targets from ``active`` weights of random sign and size one."""
    k_x, k_sign = jax.random.split(key)
    x = jax.random.normal(k_x, (count, inputs), jnp.float64) * (2 / inputs) ** 0.5
    signs = jax.random.rademacher(k_sign, (inputs,), jnp.float64)
    truth = jnp.where(jnp.arange(inputs) < active, signs, 0.0)
    return Data(x, x @ truth, truth)
