"""Random spectra, directions and starts of linear networks, and the spectra that a setting takes from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg
from jaxdyn.theories.cal.dynamics import factors
from jaxdyn.theories.cal.model import Linear, Scalar


def orthonormal(key: PRNGKeyArray, rows: int, cols: int) -> Float[Array, "r c"]:
    """Random orthonormal columns."""
    return linalg.qr(jax.random.normal(key, (rows, cols), jnp.float64))[0]


def orthonormals(keys: Sequence[PRNGKeyArray] | Key[Array, " n"], rows: int, cols: int) -> Float[Array, "n r c"]:
    """:func:`orthonormal` of several keys, compiled once."""
    return jax.vmap(lambda key: orthonormal(key, rows, cols))(jnp.stack(keys))


def spectrum(key: PRNGKeyArray, k: int, low: float, high: float, values: tuple[float, ...] | None = None) -> Float[Array, " k"]:
    """Singular values in falling order, one in each of k equal parts of [low, high], away from the parts' borders.

    Args:
        key: for the random positions.
        k: how many.
        low: lower end.
        high: upper end.
        values: if given, these are returned instead of random ones.
    """
    if values is not None:
        return jnp.asarray(values, jnp.float64)
    parts = (jnp.arange(k, dtype=jnp.float64)[::-1] + jax.random.uniform(key, (k,), jnp.float64, 0.25, 0.75)) / k
    return low + (high - low) * parts


def require_falling(setting: Any, name: str, count: int) -> None:
    """Refuse given values unless they are ``count`` positive numbers in falling order; None: the trial draws them."""
    values = getattr(setting, name)
    if values is None:
        return
    ordered = len(values) == count and all(a > b for a, b in zip(values, (*values[1:], 0.0), strict=True))
    jd.require(setting, ordered, f"{name} is {count} positive numbers in falling order", name)


def linear_start(
    strength: Float[Array, " k"],
    imbalance: Scalar,
    u: Float[Array, "o k"],
    v: Float[Array, "i k"],
    r: Float[Array, "h k"],
) -> Linear:
    """A start with product ``u diag(strength) v^T`` through the hidden directions r, and ``a^2 - b^2 = imbalance`` in each."""
    a, b = factors(strength, imbalance)
    return Linear((r * a) @ v.T, (u * b) @ r.T)
