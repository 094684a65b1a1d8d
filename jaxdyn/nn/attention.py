r"""Attention as one family of pure functions of queries, keys and values.

.. math:: s_{ij} = \frac{q_i \cdot k_j}{\sqrt e}, \qquad o_i = \sum_{j \in \text{mask}(i)} b_{ij} v_j, \qquad
   b_{ij} = s_{ij} \ \text{(linear)}, \ \ e^{s_{ij}} \ \text{(exp)}, \ \ e^{s_{ij}} / \textstyle\sum_k e^{s_{ik}} \ \text{(softmax)}

Source: arXiv:2310.00535 (JoMA), section 2, for the three kinds; arXiv:1706.03762 for the scale.
Letters: h heads of e numbers, n positions (queries), m positions (keys); leading axes are batches.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxdyn.errors import UsageError

__all__ = ["KINDS", "attend", "causal_mask", "rotate", "weights"]

KINDS = ("softmax", "exp", "linear")


def causal_mask(n: int) -> Bool[Array, "n n"]:
    """Which keys (columns) a query (row) may see: itself and all before it."""
    return jnp.tri(n, dtype=bool)


def weights(
    scores: Float[Array, "*batch n m"], kind: str = "softmax", mask: Bool[Array, "n m"] | None = None
) -> Float[Array, "*batch n m"]:
    """Attention weights b of scores s; a masked key has weight 0.

    Raises:
        UsageError: if the kind is none of :data:`KINDS`.
    """
    if kind not in KINDS:
        raise UsageError(f"attention={kind!r} is not allowed: it is one of {', '.join(KINDS)}")
    if kind == "softmax":
        return jax.nn.softmax(scores if mask is None else jnp.where(mask, scores, -jnp.inf), -1)
    b = jnp.exp(scores) if kind == "exp" else scores
    return b if mask is None else jnp.where(mask, b, 0)


def attend(
    query: Float[Array, "*batch n h e"],
    key: Float[Array, "*batch m h e"],
    value: Float[Array, "*batch m h f"],
    *,
    kind: str = "softmax",
    mask: Bool[Array, "n m"] | None = None,
    drop: Callable[[Array], Array] = lambda b: b,
) -> tuple[Float[Array, "*batch n h f"], Float[Array, "*batch h n m"]]:
    """Outputs o and weights b of all heads; ``drop`` acts on the weights that mix the values, not on those returned."""
    scores = jnp.einsum("...nhe,...mhe->...hnm", query, key) * query.shape[-1] ** -0.5
    b = weights(scores, kind, mask)
    return jnp.einsum("...hnm,...mhf->...nhf", drop(b), value), b


def rotate(x: Float[Array, "*batch n h e"], base: float = 10_000.0) -> Float[Array, "*batch n h e"]:
    r"""Rotary positions: the pair (j, j + e/2) of position i turned by the angle :math:`i\,\text{base}^{-2j/e}`.

    Scores of rotated queries and keys depend on the difference of their positions only. Source: arXiv:2104.09864, section 3.2
    (Departure: halves instead of neighbours are paired, a relabelling).

    Raises:
        UsageError: if e is odd.
    """
    n, e = x.shape[-3], x.shape[-1]
    if e % 2:
        raise UsageError(f"rotary positions need an even number of entries per head, got {e}")
    rate = base ** (-jnp.arange(0, e, 2, dtype=x.dtype) / e)
    angle = (jnp.arange(n, dtype=x.dtype)[:, None] * rate)[:, None, :]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
