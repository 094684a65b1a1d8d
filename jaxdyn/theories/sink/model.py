r"""One block with one head, any form of attention by a traced switch, for the Bigram-Backcopy task.

.. math:: x \leftarrow x + \textstyle\sum_j b_{ij} v_j O, \qquad x \leftarrow x + \mathrm{relu}(N x\, W_{in}) W_{out}, \qquad
   \text{logits} = N x\, H^\top

with learned positions and N the root-mean-square norm. Source: arXiv:2410.13835, section 2 (its one-layer transformer); the sizes
are ours.
Letters: T tokens of V, d width, f units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.engine.claims.code_field import Code
from jaxdyn.nn import attention
from jaxdyn.nn.transformer import rms_norm

FORMS = ("softmax", "zero_sink", "sink_bias", "relu", "sigmoid")


class Params(NamedTuple):
    """Weights; ``sink`` is the logit of the sink, for ``sink_bias`` alone."""

    embed: Float[Array, "V d"]
    position: Float[Array, "T d"]
    qkv: Float[Array, "three d d"]
    out: Float[Array, "d d"]
    inner: Float[Array, "d f"]
    outer: Float[Array, "f d"]
    head: Float[Array, "V d"]
    gains: Float[Array, "three d"]
    sink: Float[Array, ""]


class Watched(NamedTuple):
    """Scores and weights [T, T] of the head, and what each token's value writes into the stream [T, d]."""

    scores: Float[Array, "T T"]
    weights: Float[Array, "T T"]
    written: Float[Array, "T d"]


def init(key: PRNGKeyArray, vocabulary: int, length: int, width: int, hidden: int, dtype: str = "float32") -> Params:
    """Gaussian weights of variance 1 over the number of inputs (embeddings: of 1), gains one, the sink's logit zero."""
    keys = jax.random.split(key, 7)

    def normal(i: int, fan: int, *size: int) -> Array:
        return jax.random.normal(keys[i], size, dtype) * fan**-0.5

    return Params(
        embed=normal(0, 1, vocabulary, width),
        position=normal(1, 1, length, width),
        qkv=normal(2, width, 3, width, width),
        out=normal(3, width, width, width),
        inner=normal(4, width, width, hidden),
        outer=normal(5, hidden, hidden, width),
        head=normal(6, width, vocabulary, width),
        gains=jnp.ones((3, width), dtype),
        sink=jnp.zeros((), dtype),
    )


def margin(scores: Float[Array, "*batch T T"], at: Int[Array, " T"]) -> Float[Array, "*batch T"]:
    """The score of token 0 over the mean score of the other keys up to each query, of which ``at`` are the places."""
    others = jnp.tril(scores)[..., 1:]
    return scores[..., 0] - jnp.sum(others, -1) / jnp.maximum(at, 1).astype(others.dtype)


def forward(
    params: Params, tokens: Int[Array, " T"], form: Code, mask: Bool[Array, "T T"] | None = None
) -> tuple[Float[Array, "T V"], Watched]:
    """Logits of the next tokens, and what the head does; ``mask`` says which keys a query sees, by default those up to itself."""
    x = params.embed[tokens] + params.position[: tokens.size]
    q, k, v = jnp.einsum("td,cde->cte", rms_norm(x, params.gains[0], 1e-6), params.qkv)
    scores = q @ k.T * q.shape[-1] ** -0.5
    mask = attention.causal_mask(tokens.size) if mask is None else mask
    sink = jnp.broadcast_to(params.sink, tokens.shape)

    def weigh(name: str) -> Callable[[], Float[Array, "T T"]]:
        return lambda: attention.weights(scores, name, mask, sink if name == "sink_bias" else None)

    b = jax.lax.switch(form.index, [weigh(name) for name in FORMS])
    written = v @ params.out
    x = x + b @ written
    x = x + jax.nn.relu(rms_norm(x, params.gains[1], 1e-6) @ params.inner) @ params.outer
    return rms_norm(x, params.gains[2], 1e-6) @ params.head.T, Watched(scores, b, written)
