"""Standard normal numbers that a program computes in one place.

XLA fuses what makes a number into whatever reads it: a draw that is sliced into ten arrays is computed, and compiled, ten times,
and the inverse error function of a float64 number is 250 operations (three quarters of some losses' programs). A loop is not
fused with what follows it; ``lax.optimization_barrier`` does not stop fusion on CPU.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

__all__ = ["normal"]

TURNS = 4  # of the loop; one of a single turn would be dissolved


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """The numbers of ``jax.random.normal`` in float64."""
    size, low = math.prod(shape), np.nextafter(-1.0, 0.0)
    u = jnp.pad(jax.random.uniform(key, (size,), jnp.float64, low, 1.0), (0, -size % TURNS)).reshape(TURNS, -1)
    return jax.lax.map(lambda row: math.sqrt(2) * jax.lax.erf_inv(row), u).ravel()[:size].reshape(shape)
