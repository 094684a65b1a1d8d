"""Numbers that describe an array, for use inside trials (jax.numpy)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax.scipy.special import entr
from jaxtyping import Array, Float, PyTree

__all__ = ["entropy", "normalized_correlation", "relative_norm_error", "stable_rank", "top_eigenvalue"]


def entropy(p: Float[Array, ...], axis: int = -1) -> Float[Array, ...]:
    r"""Entropy :math:`-\sum_i p_i \ln p_i` in nats, with :math:`0 \ln 0 = 0`."""
    return jnp.sum(entr(p), axis)


def stable_rank(m: Float[Array, "... r c"]) -> Float[Array, ...]:
    r"""Stable rank :math:`\|M\|_F^2 / \|M\|_2^2`."""
    s = jnp.linalg.svd(m, compute_uv=False)
    return jnp.sum(jnp.square(s), -1) / jnp.square(s[..., 0])


def normalized_correlation(a: Float[Array, ...], b: Float[Array, ...], axis: int = -1) -> Float[Array, ...]:
    """Cosine between the mean-removed vectors along ``axis`` (Pearson's correlation)."""
    a = a - jnp.mean(a, axis, keepdims=True)
    b = b - jnp.mean(b, axis, keepdims=True)
    return jnp.sum(a * b, axis) / (jnp.linalg.norm(a, axis=axis) * jnp.linalg.norm(b, axis=axis))


def relative_norm_error(a: PyTree, b: PyTree) -> Float[Array, ""]:
    r"""Relative distance :math:`\|a - b\| / \|b\|` of two trees (all leaves as one vector); ``b`` is the reference."""
    return optax.tree.norm(jax.tree.map(jnp.subtract, a, b)) / optax.tree.norm(b)


def top_eigenvalue(hvp: Callable[[PyTree], PyTree], v0: PyTree, iters: int = 100, shift: float = 0.0) -> Float[Array, ""]:
    r"""Largest eigenvalue of a symmetric operator by power iteration on :math:`H + \text{shift}\,I`."""

    def unit(v: PyTree) -> PyTree:
        return optax.tree.scale(1 / optax.tree.norm(v), v)

    def body(_: int, v: PyTree) -> PyTree:
        return unit(jax.tree.map(lambda h, x: h + shift * x, hvp(v), v))

    v = jax.lax.fori_loop(0, iters, body, unit(v0))
    return optax.tree.vdot(v, hvp(v))
