r"""Adam's direction with a choice of where epsilon stands and how the moments are stored.

.. math:: M \leftarrow \beta_1 M + (1 - \beta_1) R, \quad V \leftarrow \beta_2 V + (1 - \beta_2) R^2, \qquad
   N = \frac{\sqrt{1 - \beta_2^k}}{1 - \beta_1^k} \frac{M}{\sqrt V + \epsilon} \ \text{(raw)} \quad\text{or}\quad
   \frac{M / (1 - \beta_1^k)}{\sqrt{V / (1 - \beta_2^k)} + \epsilon} \ \text{(corrected)}

at step k = 1, 2, …. Source: arXiv:1412.6980, section 2 (raw: its last paragraph; corrected: algorithm 1); arXiv:2403.03507,
released code (raw, epsilon 1e-6).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn.errors import UsageError
from jaxdyn.optim.blocks import Blocks, decode, encode

__all__ = ["Moments", "adam_direction"]


class Moments(NamedTuple):
    """Steps made, and both moments."""

    count: Int[Array, ""]
    mu: PyTree
    nu: PyTree


def adam_direction(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6, *, epsilon: str = "raw", stored: str = "parameter"
) -> optax.GradientTransformation:
    """Adam without its rate: updates point uphill, as those of ``optax.scale_by_adam``.

    Args:
        b1: decay of the first moment.
        b2: decay of the second.
        eps: the number added to the root.
        epsilon: "raw" or "corrected", the root to which it is added.
        stored: the moments' dtype: the parameter's, float32, or blocks of one byte per number (:mod:`jaxdyn.optim.blocks`).
            They are calculated in float32 at least.

    Raises:
        UsageError: for another name.
    """
    if epsilon not in ("raw", "corrected") or stored not in ("parameter", "float32", "8bit"):
        raise UsageError(f"epsilon={epsilon!r}, stored={stored!r} is not allowed: raw or corrected; parameter, float32 or 8bit")

    def store(x: Array, dtype: Any, signed: bool) -> Array | Blocks:
        if stored == "8bit":
            return encode(x, signed)
        return x.astype(dtype if stored == "parameter" else jnp.float32)

    def init(params: PyTree) -> Moments:
        mu, nu = (jax.tree.map(lambda p, s=s: store(jnp.zeros(p.shape, p.dtype), p.dtype, s), params) for s in (True, False))
        return Moments(jnp.zeros((), jnp.int32), mu, nu)

    def update(gradient: PyTree, state: Moments, params: PyTree | None = None) -> tuple[PyTree, Moments]:
        del params
        leaves, treedef = jax.tree.flatten(gradient)
        k = state.count + 1
        moments, updates = [], []
        for g, m, v in zip(leaves, treedef.flatten_up_to(state.mu), treedef.flatten_up_to(state.nu), strict=True):
            r = g.astype(jnp.promote_types(g.dtype, jnp.float32))
            m = b1 * decode(m).astype(r.dtype) + (1 - b1) * r
            v = b2 * decode(v).astype(r.dtype) + (1 - b2) * jnp.square(r)
            updates.append(_direction(m, v, k.astype(r.dtype)).astype(g.dtype))
            moments.append((store(m, g.dtype, True), store(v, g.dtype, False)))
        mu, nu = (treedef.unflatten([pair[i] for pair in moments]) for i in (0, 1))
        return treedef.unflatten(updates), Moments(k, mu, nu)

    def _direction(m: Float[Array, "..."], v: Float[Array, "..."], k: Float[Array, ""]) -> Float[Array, "..."]:
        first, second = 1 - b1**k, jnp.sqrt(1 - b2**k)
        return second / first * m / (jnp.sqrt(v) + eps * (1 if epsilon == "raw" else second))

    return optax.GradientTransformation(init, update)
