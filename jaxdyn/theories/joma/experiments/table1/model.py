r"""The network of Table 1, computed where its positions differ.

It is :func:`jaxdyn.nn.tree_network`, three post-norm blocks without positions under a causal mask that does not hide the padding.
So positions of the padding attend to padding alone and are all equal: of those that precede every token, one is computed, and
counts m times as a key,

.. math:: b_{ij} \propto m_j\, e^{q_i \cdot k_j / \sqrt d}, \qquad m_0 = L - n + 1, \quad m_{j>0} = 1,

which is exact. Only the last position is read: the top block computes queries and MLP there alone.
Source: arXiv:2310.00535, Table 1. Letters: C sequences of L symbols, n of them computed, d width, u hidden nodes of an MLP.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import nn
from jaxdyn.linalg import dense
from jaxdyn.nn import transformer


def positions(length: int, longest: int) -> int:
    """Number of positions to compute if no sequence has more than ``longest`` tokens: these, and one of padding."""
    return min(length, longest + 1)


def _block(
    shape: nn.Transformer, count: Float[Array, " n"], w: PyTree, x: Float[Array, "C n d"], seen: Bool[Array, "q n"]
) -> tuple[Float[Array, "C q d"], Float[Array, "C q u"]]:
    """Output and hidden nodes of a block at its last q positions."""
    asking = x[:, -seen.shape[0] :]
    query = transformer.product(shape, w, "q", asking)
    key, value = (transformer.product(shape, w, name, x) for name in ("k", "v"))
    scores = jnp.einsum("cqd,cnd->cqn", query, key) * x.shape[-1] ** -0.5
    mixed = nn.weights(scores, shape.attention, seen, counts=count) @ value
    end = transformer.ending(shape, asking, mixed[..., None, :], w)
    return end.after, end.units


def apply(
    shape: nn.Transformer, params: PyTree, tokens: Int[Array, "C L"], n: int
) -> tuple[Float[Array, "C C"], Float[Array, "s C u"]]:
    """Logits of the classes at the last position, and the largest value over positions of each hidden node below the top block.

    Rows of the logits are sequences. Their first L - n + 1 symbols must all be padding.
    """
    count = jnp.ones(n, shape.dtype).at[0].set(tokens.shape[1] - n + 1)
    seen, block = nn.causal_mask(n), functools.partial(_block, shape, count)

    def lower(x: Array, w: PyTree) -> tuple[Array, Array]:
        x, units = block(w, x, seen)
        return x, jnp.max(units, 1)

    below, top = (jax.tree.map(lambda w, part=part: w[part], params["blocks"]) for part in (slice(-1), -1))
    x, nodes = jax.lax.scan(lower, params["embed"][tokens[:, -n:]], below)
    x, _ = block(top, x, seen[-1:])
    matrix, shift = nn.read_out(params)
    return dense(x[:, 0], matrix.T) + shift, nodes
