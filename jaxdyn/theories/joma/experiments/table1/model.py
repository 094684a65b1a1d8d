r"""The network of Table 1, computed where its positions differ.

The network is ``nn.tree_network``: three post-norm blocks without positions under a causal mask that does not hide the padding. So
positions of the padding attend to padding alone and are all equal: of those that precede every token, one is computed, and counts
m times as a key,

.. math:: b_{ij} \propto m_j\, e^{q_i \cdot k_j / \sqrt d}, \qquad m_0 = L - n + 1, \quad m_{j>0} = 1,

which is exact. Only the last position is read: the top block computes queries and MLP there alone.
Source: arXiv:2310.00535, Table 1. Letters: C sequences of L symbols, n of them computed, d width, u hidden nodes of an MLP.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import nn
from jaxdyn.linalg import dense

EPSILON = 1e-5  # of nn.tree_network's layer norm


def positions(length: int, longest: int) -> int:
    """Number of positions to compute if no sequence has more than ``longest`` tokens: these, and one of padding."""
    return min(length, longest + 1)


def _normed(x: Float[Array, "*b d"], w: PyTree) -> Float[Array, "*b d"]:
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + EPSILON) * w["gain"] + w["shift"]


def _block(w: PyTree, x: Float[Array, "C n d"], bias: Float[Array, "q n"]) -> tuple[Float[Array, "C q d"], Float[Array, "C q u"]]:
    """Output and hidden nodes of a block at its last q positions."""
    asking = x[:, -bias.shape[0] :]
    query, key, value = jnp.split(w["qkv"], 3, -1)
    scores = jnp.einsum("cqd,cnd->cqn", dense(asking, query), dense(x, key)) * x.shape[-1] ** -0.5
    x = _normed(asking + jax.nn.softmax(scores + bias, -1) @ dense(x, value), w["norm1"])
    units = jax.nn.relu(dense(x, w["inner"]) + w["inner_bias"])
    return _normed(x + dense(units, w["outer"]) + w["outer_bias"], w["norm2"]), units


def apply(params: PyTree, tokens: Int[Array, "C L"], n: int) -> tuple[Float[Array, "C C"], Float[Array, "s C u"]]:
    """Logits of the classes at the last position, and the largest value over positions of each hidden node below the top block.

    Rows of the logits are sequences. Their first L - n + 1 symbols must all be padding.
    """
    dtype = params["embed"].dtype
    count = jnp.ones(n, dtype).at[0].set(tokens.shape[1] - n + 1)
    bias = jnp.where(jnp.tri(n, dtype=bool), jnp.log(count), -jnp.inf)

    def lower(x: Array, w: PyTree) -> tuple[Array, Array]:
        x, units = _block(w, x, bias)
        return x, jnp.max(units, 1)

    below, top = (jax.tree.map(lambda w, part=part: w[part], params["blocks"]) for part in (slice(-1), -1))
    x, nodes = jax.lax.scan(lower, params["embed"][tokens[:, -n:]], below)
    x, _ = _block(top, x, bias[-1:])
    matrix, shift = nn.read_out(params)
    return dense(x[:, 0], matrix.T) + shift, nodes
