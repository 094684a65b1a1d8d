r"""A transformer of two layers of attention, without anything else, with learned relative positions.

.. math:: x^{l+1}_t = x^l_t + \sum_{s \le t} b^l_{ts}\, V^l x^l_s, \qquad
          b^l_{ts} = \mathrm{softmax}_s\Bigl(\frac{(Q^l x^l_t)\cdot(K^l x^l_s)}{\sqrt d} + p^l_{t-s}\Bigr), \qquad
          \text{logits} = H x^2_t

Source: arXiv:2402.11004, section 2. Departure: a relative position adds a number to the score, not a vector to the key.
Letters: T length, k tokens, d width, two layers.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.linalg import dense
from jaxdyn.nn import attention

LAYERS = 2


class Params(NamedTuple):
    """Weights; ``position`` is indexed by the distance from query to key."""

    embed: Float[Array, "k d"]
    qkv: Float[Array, "layers three d d"]
    position: Float[Array, "layers T"]
    head: Float[Array, "k d"]


def init(key: PRNGKeyArray, tokens: int, length: int, width: int, dtype: str = "float32") -> Params:
    """Gaussian weights of variance 1 over the number of inputs (embeddings: of 1), positions zero."""
    keys = jax.random.split(key, 3)
    return Params(
        embed=jax.random.normal(keys[0], (tokens, width), dtype),
        qkv=jax.random.normal(keys[1], (LAYERS, 3, width, width), dtype) * width**-0.5,
        position=jnp.zeros((LAYERS, length), dtype),
        head=jax.random.normal(keys[2], (tokens, width), dtype) * width**-0.5,
    )


def forward(
    params: Params, tokens: Int[Array, "b T"], first: float | Float[Array, ""] = 1.0
) -> tuple[Float[Array, "b T k"], Float[Array, "layers b T T"]]:
    """Logits of the next tokens, and the weights of both layers; ``first`` = 0 takes the first layer out."""
    x, place = params.embed[tokens], jnp.arange(tokens.shape[1])
    distance = jnp.maximum(place[:, None] - place[None], 0)
    seen = []
    for layer, share in enumerate((first, 1.0)):
        q, k, v = (dense(x, w) for w in params.qkv[layer])
        bias = params.position[layer][distance]
        out, b = attention.attend(
            q[..., None, :], k[..., None, :], v[..., None, :], mask=attention.causal_mask(place.size), bias=bias
        )
        x = x + share * out[..., 0, :]
        seen.append(b[:, 0])
    return dense(x, params.head.T), jnp.stack(seen)
