r"""Expected loss and tangent kernel from the mean :math:`\bar w` and the second moments M of the weights.

.. math:: L = \frac14\Bigl(\frac{|\beta|^2 - \alpha\epsilon\,\mathrm{tr} M}{D}\Bigr)^2
          + \frac{1}{2D^2}\,\|\alpha\epsilon M - \beta\beta^\top\|_F^2 + \frac{\alpha^2}{D}|\bar w|^2,

the errors of variance, of alignment, and the power of linear functions; and

.. math:: K(x, x') = (x\cdot x')\,\bigl[1 + \epsilon\,\bar w\cdot(x + x') + \epsilon^2\,x^\top M x'\bigr],

the inner product of gradients by the weights over :math:`\alpha^2/N`. In the lazy limit the kernel stays that of the first weights:
gradient descent is then that of kernel regression on what the first output leaves.

A loss falls to a level for good at its last passage (:func:`settled`).
Source: arXiv:2310.06110, the polynomial regression. Letters: N nodes, d = D inputs, p, q samples.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import linalg

Scalar = float | Float[Array, ""]


def moments(weights: Float[Array, "N d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Mean and second moments of the nodes' weights."""
    return jnp.mean(weights, 0), weights.T @ weights / weights.shape[0]


def expected_terms(weights: Float[Array, "N d"], alpha: Scalar, epsilon: Scalar) -> Float[Array, " term"]:
    """The three terms of the expected squared error of a network that is not centred: variance, alignment, linear power."""
    mean, second = moments(weights)
    d = weights.shape[1]
    wanted = jnp.zeros_like(second).at[0, 0].set(d)
    left = alpha * epsilon * second - wanted
    return jnp.stack([(jnp.trace(left) / d) ** 2 / 4, jnp.sum(left**2) / (2 * d**2), alpha**2 / d * jnp.sum(mean**2)])


def kernel(weights: Float[Array, "N d"], epsilon: Scalar, x: Float[Array, "p d"], z: Float[Array, "q d"]) -> Float[Array, "p q"]:
    """The tangent kernel over alpha^2 / N."""
    mean, second = moments(weights)
    linear = (x @ mean)[:, None] + (z @ mean)[None]
    return (x @ z.T) * (1 + epsilon * linear + epsilon**2 * (x @ second @ z.T))


def frozen(
    inside: Float[Array, "p p"], across: Float[Array, "q p"], missing: Float[Array, " p"], rate: Scalar, steps: Scalar
) -> tuple[Float[Array, " q"], Float[Array, ""]]:
    """What gradient descent with this kernel adds to the outputs, and the squared movement of the weights over N / alpha^2.

    Every step of rate eta multiplies the residuals by I - (eta / p) K.
    """
    values, vectors = linalg.eigh(inside)
    done = 1 - (1 - rate * values / len(missing)) ** steps
    share = vectors @ (done / values * (vectors.T @ missing))
    return across @ share, share @ inside @ share


def movement(squared: Scalar, alpha: Scalar, nodes: int, first: Scalar) -> Float[Array, ""]:
    """Movement of the weights over their first norm, from :func:`frozen`."""
    return jnp.sqrt(squared * nodes) / (alpha * first)


def settled(times: Float[Array, " T"], losses: Float[Array, " T"], level: float) -> Float[Array, ""]:
    """Time of the last fall to the level, between two records in the logarithm of the loss; the last time if it ends above."""
    above = losses > level
    i = jnp.where(jnp.any(above), len(losses) - 1 - jnp.argmax(above[::-1]), 0)
    j = jnp.minimum(i + 1, len(losses) - 1)
    a, b = jnp.log(losses[i]), jnp.log(losses[j])
    share = jnp.where(a > b, (a - jnp.log(level)) / jnp.where(a > b, a - b, 1), 0)
    inside = times[i] + jnp.clip(share, 0, 1) * (times[j] - times[i])
    return jnp.where(above[-1], times[-1], jnp.where(jnp.any(above), inside, times[0]))
