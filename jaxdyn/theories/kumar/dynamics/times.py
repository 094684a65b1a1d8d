"""When a loss falls to a level for good."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def settled(times: Float[Array, " T"], losses: Float[Array, " T"], level: float) -> Float[Array, ""]:
    """Time of the last fall to the level, between two records in the logarithm of the loss; the last time if it ends above."""
    above = losses > level
    i = jnp.where(jnp.any(above), len(losses) - 1 - jnp.argmax(above[::-1]), 0)
    j = jnp.minimum(i + 1, len(losses) - 1)
    a, b = jnp.log(losses[i]), jnp.log(losses[j])
    share = jnp.where(a > b, (a - jnp.log(level)) / jnp.where(a > b, a - b, 1), 0)
    inside = times[i] + jnp.clip(share, 0, 1) * (times[j] - times[i])
    return jnp.where(above[-1], times[-1], jnp.where(jnp.any(above), inside, times[0]))
