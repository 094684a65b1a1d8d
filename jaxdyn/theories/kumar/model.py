r"""The network of Kumar et al.: a layer of nodes that are linear with a small quadratic part, averaged, and an output scale.

.. math:: f(x) = \frac{\alpha}{N}\sum_{i} \varphi(w_i\cdot x),\qquad \varphi(h) = h + \tfrac{\epsilon}{2}h^2,\qquad
          y(x) = \tfrac12(\beta\cdot x)^2,

with :math:`x \sim N(0, I/D)`, :math:`w_i \sim N(0, I)` and :math:`|\beta|^2 = D`. Training is gradient descent on half of the mean
squared error with the rate :math:`\eta N/\alpha^2`, so that the time of the linearised network does not depend on alpha. A centred
network has its first output subtracted.

Source: arXiv:2310.06110, the polynomial regression. Letters: N nodes, d = D inputs, p samples.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn.linalg import dense

Scalar = float | Float[Array, ""]


class Network(NamedTuple):
    """What stays fixed: output scale, quadratic part, first weights, and how much of their output is subtracted (0 or 1)."""

    alpha: Scalar
    epsilon: Scalar
    first: Float[Array, "N d"]
    centred: Scalar


def init(key: PRNGKeyArray, nodes: int, dimension: int, size: Scalar, dtype: str) -> Float[Array, "N d"]:
    """Normal weights of a standard deviation."""
    return jnp.asarray(size, dtype) * jax.random.normal(key, (nodes, dimension), jnp.float32).astype(dtype)


def inputs(key: PRNGKeyArray, count: int, dimension: int, dtype: str) -> Float[Array, "p d"]:
    """Normal inputs of length one on average."""
    return jax.random.normal(key, (count, dimension), jnp.float32).astype(dtype) / dimension**0.5


def target(x: Float[Array, "p d"]) -> Float[Array, " p"]:
    """The square of the first input, in units of its deviation."""
    return 0.5 * x.shape[1] * jnp.square(x[:, 0])


def mean(weights: Float[Array, "N d"], epsilon: Scalar, x: Float[Array, "p d"]) -> Float[Array, " p"]:
    """The average over nodes."""
    h = dense(x, weights.T)
    return jnp.mean(h + epsilon / 2 * h * h, 1)


def outputs(net: Network, weights: Float[Array, "N d"], x: Float[Array, "p d"]) -> Float[Array, " p"]:
    """The network's outputs."""
    return net.alpha * (mean(weights, net.epsilon, x) - net.centred * mean(net.first, net.epsilon, x))


def error(net: Network, weights: Float[Array, "N d"], x: Float[Array, "p d"]) -> Float[Array, ""]:
    """Mean squared error."""
    return jnp.mean(jnp.square(outputs(net, weights, x) - target(x)))
