r"""How well single hidden nodes follow the latent variables: Table 1's score.

For latent j with 0/1 activity a and node i with its largest value h over positions, over samples x:

.. math:: \rho_{ji} = \frac{\sum_x (a_j(x) - \bar a_j)(h_i(x) - \bar h_i)}{\|a_j - \bar a_j\|\,\|h_i - \bar h_i\|}, \qquad
   \text{score} = \operatorname{mean}_{j:\,\bar a_j > 0}\ \max_i \rho_{ji}

Samples repeat the C sequences, so the sums run over sequences, weighted by how often each is in the sample: the same value. A
constant node or latent has correlation 0.
Source: arXiv:2310.00535, Table 1; the published means are over latents that are active at least once (with the others counted as 0
they could not be reached). The published code of the score is not known; here the correlation keeps its sign. (With absolute
values, untrained networks of width 1024 would score .74 instead of .64 at s = 1 for 20 classes, two members, 10 and 20 latents.)
Letters: C sequences, N latents, u nodes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def score(nodes: Float[Array, "C u"], active: Bool[Array, "C N"], counts: Int[Array, " C"]) -> Float[Array, ""]:
    """Mean over active latents of the best node's correlation."""
    share = counts.astype(nodes.dtype)[:, None] / jnp.sum(counts).astype(nodes.dtype)
    sampled = share > 0
    low, high = jnp.min(jnp.where(sampled, nodes, jnp.inf), 0), jnp.max(jnp.where(sampled, nodes, -jnp.inf), 0)
    moves = high - low > 64 * jnp.finfo(nodes.dtype).eps * jnp.maximum(
        jnp.abs(low), jnp.abs(high)
    )  # else it varies by rounding alone
    a, ever = active.astype(nodes.dtype), jnp.any(active & sampled, 0)
    a, h = (x - jnp.sum(share * x, 0) for x in (a, nodes))
    size = jnp.sqrt(jnp.sum(share * jnp.square(a), 0))[:, None] * jnp.sqrt(jnp.sum(share * jnp.square(h), 0))
    rho = jnp.where((size > 0) & moves, (share * a).T @ h / jnp.where(size > 0, size, 1), 0)
    best = jnp.max(rho, 1)
    return jnp.sum(jnp.where(ever, best, 0)) / jnp.sum(ever).astype(nodes.dtype)


def scores(
    nodes: Float[Array, "C u"], active: Bool[Array, "C N"], counts: Int[Array, " C"], orders: Int[Array, "p C"]
) -> Float[Array, " p"]:
    """The score of latents whose activity is permuted over the sequences, for each of several orders."""
    return jax.lax.map(lambda order: score(nodes, active[order], counts), orders)
