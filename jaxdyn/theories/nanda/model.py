r"""A one-layer transformer on ``a b =``, read at the last position; no layer norm, no biases but those of the MLP.

.. math:: x_i = W_E[t_i] + W_P[i], \qquad
   y = x_2 + \sum_h W_O^h \sum_{i \le 2} \operatorname{softmax}_i\!\Bigl(\tfrac{(W_Q^h x_2) \cdot (W_K^h x_i)}{\sqrt{d_h}}\Bigr)
   W_V^h x_i, \qquad z = W_U \bigl(y + W_2\, \mathrm{ReLU}(W_1 y + b_1) + b_2\bigr)

Tokens are t = (a, b, =). Only the last position is read, and one layer lies above the embedding: the mask hides nothing, the query
is the same for all pairs, and scores and values are functions of one token. So they are computed for 2p + 1 tokens rather than
for 3n, and gathered.
Source: arXiv:2301.05217, section 3. Letters: p residues, d width, h heads of e numbers, m units of the MLP, n pairs.
Departure: the output has p logits; the token "=" has none.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.linalg import dense


class Params(NamedTuple):
    """The weights; row p of ``embed`` is the token "="."""

    embed: Float[Array, "p+1 d"]
    position: Float[Array, "3 d"]
    query: Float[Array, "d h e"]
    key: Float[Array, "d h e"]
    value: Float[Array, "d h e"]
    out: Float[Array, "h e d"]
    w_in: Float[Array, "d m"]
    b_in: Float[Array, " m"]
    w_out: Float[Array, "m d"]
    b_out: Float[Array, " d"]
    unembed: Float[Array, "d p"]


def init(key: PRNGKeyArray, p: int, width: int, heads: int, hidden: int, dtype: str = "float32") -> Params:
    r"""Gaussian weights with standard deviation :math:`d^{-1/2}` (unembedding :math:`p^{-1/2}`), biases zero.

    Source: the released code of arXiv:2301.05217. Departure: :math:`p^{-1/2}` where the code has :math:`(p+1)^{-1/2}`.
    """
    each = width // heads
    shapes = {
        "embed": (p + 1, width),
        "position": (3, width),
        "query": (width, heads, each),
        "key": (width, heads, each),
        "value": (width, heads, each),
        "out": (heads, each, width),
        "w_in": (width, hidden),
        "w_out": (hidden, width),
        "unembed": (width, p),
    }
    sizes, keys = [math.prod(shape) for shape in shapes.values()], jax.random.split(key, len(shapes))
    scale = {name: width**-0.5 for name in shapes} | {"unembed": p**-0.5}
    # one draw for all, each cut to its size: as many draws as layers would take three times as long to compile
    normal = jax.vmap(lambda k: jax.random.normal(k, (max(sizes),), dtype))(keys)
    drawn = {name: scale[name] * x[:n].reshape(shapes[name]) for name, x, n in zip(shapes, normal, sizes, strict=True)}
    return Params(b_in=jnp.zeros(hidden, dtype), b_out=jnp.zeros(width, dtype), **drawn)


def all_pairs(p: int) -> Int[Array, "{p*p} 2"]:
    """All pairs (a, b), b running fastest."""
    return jnp.stack(jnp.divmod(jnp.arange(p * p, dtype=jnp.int32), p), -1)


def answers(pairs: Int[Array, "n 2"], p: int) -> Int[Array, " n"]:
    """The sums a + b modulo p."""
    return jnp.sum(pairs, 1, dtype=jnp.int32) % p


def logits(w: Params, pairs: Int[Array, "n 2"]) -> Float[Array, "n p"]:
    """The logits z of each pair."""
    numbers, end = w.embed[:-1], w.embed[-1] + w.position[2]
    tokens = jnp.concatenate([numbers + w.position[0], numbers + w.position[1], end[None]])  # rows: a first, b second, "="
    query = jnp.einsum("d,dhe->he", end, w.query)
    score = jnp.einsum("td,dhe,he->th", tokens, w.key, query) * w.key.shape[-1] ** -0.5
    value = jnp.einsum("td,dhe->the", tokens, w.value)
    rows = (pairs[:, 0], pairs[:, 1] + len(numbers), 2 * len(numbers))  # the last one is the same for all pairs: no gather
    scores = [score[row] for row in rows]
    largest = jax.lax.stop_gradient(functools.reduce(jnp.maximum, scores))
    weights = [jnp.exp(x - largest) for x in scores]
    mixed = sum(a[..., None] * value[row] for a, row in zip(weights, rows, strict=True)) / sum(weights)[..., None]
    y = end + dense(mixed.reshape(len(mixed), -1), w.out.reshape(-1, w.out.shape[-1]))
    y = y + dense(jax.nn.relu(dense(y, w.w_in) + w.b_in), w.w_out) + w.b_out
    return dense(y, w.unembed)


def loss(z: Float[Array, "n p"], answers: Int[Array, " n"]) -> Float[Array, " n"]:
    r"""Cross-entropy of each pair, :math:`\ln\bigl(1 + \sum_{c \ne y} e^{z_c - z_y}\bigr)`; chance is ln p.

    So written a loss and its gradient keep their relative precision however small they are. Departure: the paper's code takes
    the logarithm of the softmax, in float64; in float32 its losses below 1e-7 would be rounding, and training would stop.
    """
    right = answers[:, None] == jnp.arange(z.shape[1], dtype=jnp.int32)
    others = jax.nn.logsumexp(jnp.where(right, -jnp.inf, z), 1)
    return jax.nn.softplus(others - jnp.sum(jnp.where(right, z, 0), 1))


def norm(w: Params) -> Float[Array, ""]:
    """Sum of the squares of all weights."""
    return sum(jnp.sum(jnp.square(x)) for x in w)
