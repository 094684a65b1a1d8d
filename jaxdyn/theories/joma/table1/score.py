r"""How well single hidden nodes follow the latent variables: Table 1's score, and the numbers it reports.

For latent j with 0/1 activity a and node i with its largest value h over positions, over samples x:

.. math:: \rho_{ji} = \frac{\sum_x (a_j(x) - \bar a_j)(h_i(x) - \bar h_i)}{\|a_j - \bar a_j\|\,\|h_i - \bar h_i\|}, \qquad
   \text{score} = \operatorname{mean}_{j:\,\bar a_j > 0}\ \max_i \rho_{ji}

Samples repeat the C sequences, so the sums run over sequences, weighted by how often each was drawn: the same number. A constant
node or latent has correlation 0.
Source: arXiv:2310.00535, Table 1; the published means are those of latents that are active at least once (averaging those that
never are, as 0, cannot give them). The published code for it is not known: here the correlation has its sign. (With absolute
values untrained networks of width 1024 would have .74 rather than .64 at s = 1 for 20 classes, two members, 10 and 20 latents.)
Letters: C sequences, N latents, u nodes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["PUBLISHED", "score", "scores"]

# (C, k, (N0, N1)): mean and standard deviation over 5 runs at s = 0, then at s = 1
PUBLISHED = {
    (20, 2, (10, 20)): ((0.99, 0.01), (0.81, 0.05)),
    (20, 2, (20, 30)): ((0.97, 0.02), (0.80, 0.05)),
    (20, 3, (10, 20)): ((1.00, 0.00), (0.69, 0.05)),
    (20, 3, (20, 30)): ((0.96, 0.02), (0.68, 0.04)),
    (30, 2, (10, 20)): ((0.99, 0.01), (0.73, 0.08)),
    (30, 2, (20, 30)): ((0.94, 0.04), (0.74, 0.03)),
    (30, 3, (10, 20)): ((0.99, 0.01), (0.72, 0.04)),
    (30, 3, (20, 30)): ((0.95, 0.03), (0.66, 0.02)),
    (50, 2, (10, 20)): ((0.99, 0.01), (0.58, 0.02)),
    (50, 2, (20, 30)): ((0.95, 0.03), (0.55, 0.01)),
    (50, 3, (10, 20)): ((0.99, 0.01), (0.64, 0.02)),
    (50, 3, (20, 30)): ((0.95, 0.03), (0.61, 0.04)),
}


def score(nodes: Float[Array, "C u"], active: Bool[Array, "C N"], counts: Int[Array, " C"]) -> Float[Array, ""]:
    """Mean over active latents of the best node's correlation."""
    share = counts.astype(nodes.dtype)[:, None] / jnp.sum(counts).astype(nodes.dtype)
    drawn = share > 0
    low, high = jnp.min(jnp.where(drawn, nodes, jnp.inf), 0), jnp.max(jnp.where(drawn, nodes, -jnp.inf), 0)
    moves = high - low > 64 * jnp.finfo(nodes.dtype).eps * jnp.maximum(jnp.abs(low), jnp.abs(high))  # else rounding is all it has
    a, ever = active.astype(nodes.dtype), jnp.any(active & drawn, 0)
    a, h = (x - jnp.sum(share * x, 0) for x in (a, nodes))
    size = jnp.sqrt(jnp.sum(share * jnp.square(a), 0))[:, None] * jnp.sqrt(jnp.sum(share * jnp.square(h), 0))
    rho = jnp.where((size > 0) & moves, (share * a).T @ h / jnp.where(size > 0, size, 1), 0)
    best = jnp.max(rho, 1)
    return jnp.sum(jnp.where(ever, best, 0)) / jnp.sum(ever).astype(nodes.dtype)


def scores(
    nodes: Float[Array, "C u"], active: Bool[Array, "C N"], counts: Int[Array, " C"], orders: Int[Array, "p C"]
) -> Float[Array, " p"]:
    """The score of latents whose activity belongs to other sequences, for each of several orders of the sequences."""
    return jax.lax.map(lambda order: score(nodes, active[order], counts), orders)
