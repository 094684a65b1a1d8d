"""Standard normal numbers that a program computes only once; and the dtype in which numbers are drawn.

``jax.random`` draws in the dtype that it is given: uniform numbers in bfloat16 have 128 values, and normal ones are coarse and
biased. Numbers are drawn in float32 at least, and cast.

XLA fuses the computation of a number into everything that reads it: a draw that is sliced into ten arrays is compiled and computed
ten times, and the inverse error function of a float64 number takes 250 operations (three quarters of some losses' programs). A loop
is not fused with its readers; ``lax.optimization_barrier`` does not prevent fusion on CPU.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn.errors import UsageError, shown, whole

__all__ = ["normal", "wide"]

TURNS = 4  # iterations of the loop; XLA removes a loop of a single iteration


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """The same numbers as ``jax.random.normal``, in float64.

    Raises:
        UsageError: outside ``jax.enable_x64(True)``, for a shape that is not a tuple of whole numbers, and unless there is one key.
    """
    if jax.dtypes.canonicalize_dtype(float) != jnp.float64:
        raise UsageError("normal numbers are in float64, which is not allowed here: call this inside jax.enable_x64(True)")
    if not isinstance(shape, tuple | list):
        raise UsageError(f"shape={shown(shape)} is not allowed: it is a tuple of whole numbers")
    shape = tuple(whole("an entry of shape", n, least=0) for n in shape)
    if not _is_key(key):
        raise UsageError(f"key={shown(key)} is not allowed: it is one key of jax.random.key, and jax.vmap takes many")
    size, low = math.prod(shape), np.nextafter(-1.0, 0.0)
    u = jnp.pad(jax.random.uniform(key, (size,), jnp.float64, low, 1.0), (0, -size % TURNS)).reshape(TURNS, -1)
    drawn: Array = jax.lax.map(lambda row: math.sqrt(2) * jax.lax.erf_inv(row), u).ravel()[:size].reshape(shape)
    return drawn


def wide(dtype: Any) -> np.dtype:
    """The dtype in which numbers for a dtype are drawn: its own, but float32 for one with fewer bits."""
    return np.dtype(jnp.promote_types(dtype, jnp.float32))


def _is_key(key: Any) -> bool:
    """Whether this is a single key, typed or raw."""
    dtype = getattr(key, "dtype", None)
    if dtype is None:
        return False
    return bool(key.ndim == (0 if jnp.issubdtype(dtype, jax.dtypes.prng_key) else 1) and (key.ndim == 0 or dtype == jnp.uint32))
