r"""Best sizes at a budget from losses alone: vertices of parabolas (approach 2) and the minimum over curves (approach 1).

Source: arXiv:2203.15556, sections 3.1 and 3.2. Letters: k budgets, s sizes; x are logarithms of sizes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import linalg


def vertex(x: Float[Array, " s"], y: Float[Array, " s"], weight: Float[Array, " s"]) -> Float[Array, ""]:
    """Where the parabola through the points, by weighted least squares, is least."""
    centre = jnp.sum(weight * x) / jnp.sum(weight)
    powers = jnp.stack([jnp.ones_like(x), x - centre, (x - centre) ** 2])
    c = linalg.solve((powers * weight) @ powers.T, (powers * weight) @ y)
    return centre - c[1] / (2 * c[2])


def near(x: Float[Array, " s"], y: Float[Array, " s"], half: Any) -> Float[Array, " s"]:
    """Ones for the points within ``half`` of the lowest, zeros elsewhere."""
    return (jnp.abs(x - x[jnp.argmin(y)]) <= half).astype(y.dtype)


def envelope(x: Float[Array, " s"], y: Float[Array, "k s"]) -> Float[Array, " k"]:
    """The size of the lowest curve at each budget."""
    return x[jnp.argmin(y, -1)]


def slope(x: Float[Array, " k"], y: Float[Array, " k"]) -> Float[Array, ""]:
    """The least squares' slope."""
    x = x - jnp.mean(x)
    return jnp.sum(x * (y - jnp.mean(y))) / jnp.sum(x**2)


def vertices(x: Float[Array, " s"], y: Float[Array, "k s"], half: Any) -> Float[Array, " k"]:
    """The vertex at each budget, of a parabola through the sizes within ``half`` of the lowest."""
    return jax.vmap(lambda row: vertex(x, row, near(x, row, half)))(y)
