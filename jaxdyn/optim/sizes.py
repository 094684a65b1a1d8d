r"""Euclidean norms of arrays whose entries have no square: below 1e-19 or above 1e19 in float32, it is zero or infinite.

.. math:: \|x\| = 2^k \, \|x / 2^k\|, \qquad 2^k \le \max_i |x_i| < 2^{k+1}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

__all__ = ["binade", "norm", "tree_norm"]

Axes = int | tuple[int, ...] | None


def binade(x: Float[Array, "..."], axis: Axes = None) -> Float[Array, "..."]:
    """The power of two at or below the largest absolute value along the axes, which stay with length 1; 1 if that is zero."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis, keepdims=True, initial=0))
    usable = (largest > 0) & (largest < jnp.inf)
    # its inverse is to be a normal number, too
    most = int(0.8 * jnp.finfo(x.dtype).maxexp)
    exponent = jnp.clip(jnp.frexp(jnp.where(usable, largest, 1))[1] - 1, -most, most)
    return jnp.ldexp(jnp.ones((), x.dtype), exponent)


def norm(x: Float[Array, "..."], axis: Axes = None) -> Float[Array, "..."]:
    """The norm along the axes, which stay with length 1; calculated in float32 at least."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    plain = jnp.sqrt(jnp.sum(jnp.square(x), axis, keepdims=True))
    scale = binade(x, axis)
    scaled = scale * jnp.sqrt(jnp.sum(jnp.square(x / scale), axis, keepdims=True))
    # to the last bit the same where squares exist
    return jnp.where((plain > float(jnp.finfo(x.dtype).tiny) ** 0.4) & (plain < jnp.inf), plain, scaled)


def tree_norm(tree: PyTree) -> Float[Array, ""]:
    """The norm of all arrays of a tree as one vector, in the widest of their dtypes; zero for a tree without numbers."""
    leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(tree) if jnp.size(leaf)]
    if not leaves:
        return jnp.zeros(())
    plain = optax.tree.norm(leaves)
    largest = binade(jnp.stack([jnp.max(jnp.abs(leaf)).astype(plain.dtype) for leaf in leaves]))[0]
    scaled = largest * optax.tree.norm([leaf / largest.astype(leaf.dtype) for leaf in leaves])
    # to the last bit the same where squares exist
    return jnp.where((plain > float(jnp.finfo(plain.dtype).tiny) ** 0.4) & (plain < jnp.inf), plain, scaled)
