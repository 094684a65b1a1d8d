r"""A network with one hidden layer of n ReLUs and 2n + d weights that takes any values at any n distinct points of R^d.

.. math:: c(x) = \sum_j w_j \max(a \cdot x - b_j, 0), \qquad b_1 < z_1 < b_2 < z_2 < \dots, \quad z_i = a \cdot x_i \text{ sorted}

with b_1 = z_1 - 1 and the others a tenth of the way from one z to the next (halfway, rounding errors grow from piece to piece).
The matrix max(z_i - b_j, 0) is lower triangular with a positive diagonal, so that the weights follow one after another: on the
i-th piece the function is s_i z - t_i with s_i = sum of w_j, t_i = sum of w_j b_j, j <= i.
Source: arXiv:1611.03530, Theorem 1 and its proof. Letters: n points, d inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

PLACE = 0.1  # of a bias between the two values of z around it


class Interpolant(NamedTuple):
    """Direction a, biases b and weights w; masked units have weight zero."""

    a: Float[Array, " d"]
    b: Float[Array, " n"]
    w: Float[Array, " n"]


def construct(
    a: Float[Array, " d"], x: Float[Array, "n d"], y: Float[Array, " n"], used: Bool[Array, " n"], dropped: Any = -1
) -> Interpolant:
    """The network through the points in use; ``dropped`` leaves out one unit (its place in the order of z; -1: none)."""
    z = jnp.where(used, x @ a, jnp.inf)
    order = jnp.argsort(z)
    z, y = z[order], y[order]
    b = jnp.concatenate([z[:1] - 1, (1 - PLACE) * z[:-1] + PLACE * z[1:]])
    free = jnp.isfinite(z) & (jnp.arange(z.size) != dropped)
    z, b = jnp.where(jnp.isfinite(z), z, 0), jnp.where(jnp.isfinite(b), b, 0)

    def unit(carry: tuple[Array, Array], row: tuple[Array, Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        (s, t), (z, b, y, free) = carry, row
        w = jnp.where(free, (y - (s * z - t)) / jnp.where(z > b, z - b, 1), 0)
        return (s + w, t + w * b), w

    zero = jnp.zeros((), z.dtype)
    return Interpolant(a, b, jax.lax.scan(unit, (zero, zero), (z, b, y, free))[1])


def apply(network: Interpolant, x: Float[Array, "m d"]) -> Float[Array, " m"]:
    """Its output."""
    return jax.nn.relu((x @ network.a)[:, None] - network.b) @ network.w


def weights(points: Any, inputs: int) -> Any:
    """How many numbers the network has: w, b and a."""
    return 2 * points + inputs
