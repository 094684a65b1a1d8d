r"""JoMA's letters read off a block of a transformer: logits z, projections v of the MLP's weights, and how fast scores learn.

JoMA's logits are free parameters, and its embeddings orthonormal. In a transformer the score of a key k on a query q is
:math:`z = q \cdot k / \sqrt e`, and what a key writes through :math:`W_V W_O` takes the place of its embedding: u, as the MLP reads
it, behind a norm on the norm's present scale, so that pre-activations are :math:`\sum_m b_m v_m + \xi`, :math:`v_m = u_m^\top W`.
Let a push on a score be minus the loss's slope there. Descent on :math:`W_Q, W_K` alone answers a push on key m by

.. math:: \dot z_m = R_m\,(\text{push on } m), \qquad R_m = \|\nabla_{W_Q} z_m\|^2 + \|\nabla_{W_K} z_m\|^2
   = \tfrac1e\bigl(\|x\|^2\|k_m\|^2 + \|q\|^2\|x_m\|^2\bigr)

where keys, and what the matrices read of their tokens (x), are orthogonal; descent on the MLP moves v by
:math:`\|u_m\|^2` times what JoMA has for embeddings of length 1. So Theorem 1 holds with the ratio
:math:`r_m = R_m / \|u_m\|^2` in the place of its ratio of learning rates, if :math:`W_V`, :math:`W_O` and embeddings stand still.

A key is known by its token, as in JoMA: everything is a mean over the places where a token is seen by a query that counts. With
several queries z is the score of the mean query, whose change is the law of a sum over queries.

Source: arXiv:2310.00535, section 2 and Theorem 1. Letters: b sequences of n places, h heads of e numbers, M tokens, d width, f
units that read the stream, L layers.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxdyn.instruments.moment import Batch
from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import BlockActivations, reduce_blocks, scores
from jaxdyn.nn.norms import rms_norm
from jaxdyn.nn.transformer import entering, heads, mask_of, product, with_sink
from jaxdyn.theories.joma.dynamics import invariants as theory

__all__ = ["SHIFTS", "SOFT", "Letters", "Places", "letters", "lower", "places"]

SOFT = ("softmax", "zero_sink", "sink_bias")  # weights with a sum over keys
SHIFTS = ("softmax",)  # those that do not feel a constant that is added to all scores


class Places(NamedTuple):
    """Where tokens are, and which pairs of query and key count; a sink token comes first, as the last of the M tokens."""

    token: Float[Array, "b n M"]  # 1 for the token of a place
    weight: Float[Array, "b n"]  # of a query; the sum is 1
    seen: Float[Array, "b n n"]  # the weight of a query for each key that it sees
    share: Float[Array, " M"]  # of a token, of all that is seen


class Letters(NamedTuple):
    """JoMA's letters of every layer."""

    z: Float[Array, "L h M"]
    side: Float[Array, "L h M"]  # what the law is about: z, or the function of it that is conserved
    b: Float[Array, "L h M"]  # mean attention
    rate: Float[Array, "L h M"]  # R
    u: Float[Array, "L h M d"]
    w: Float[Array, "L d f"]


def places(shape: Transformer, batch: Batch, dtype: str) -> Places:
    """The places of a batch."""
    tokens = with_sink(shape, batch.tokens)
    token = jax.nn.one_hot(tokens, shape.vocabulary + shape.sink_token, dtype=dtype)
    weight = jnp.pad(batch.weights.astype(dtype), ((0, 0), (int(shape.sink_token), 0)))
    seen = weight[:, :, None] * mask_of(shape, tokens.shape[1])
    share = jnp.einsum("bnm,bmt->t", seen, token)
    return Places(token, weight, seen, share / jnp.sum(share))


def over(sums: Float[Array, "... M"], at: Places) -> Float[Array, "... M"]:
    """Means from sums over pairs; 0 of a token that is nowhere seen."""
    count = at.share * jnp.sum(at.seen)
    return jnp.where(count > 0, sums / jnp.where(count > 0, count, 1), 0)


def of_pairs(at: Places, x: Float[Array, "b h n m"]) -> Float[Array, "h M"]:
    """The mean over pairs of each token as the key."""
    return over(jnp.einsum("bnm,bmt,bhnm->ht", at.seen, at.token, jnp.where(at.seen[:, None] > 0, x, 0)), at)


def of_keys(at: Places, x: Float[Array, "b m h e"]) -> Float[Array, "h e M"]:
    """The mean of what keys have, over the same pairs."""
    return over(jnp.einsum("bm,bmt,bmhe->het", jnp.sum(at.seen, 1), at.token, x), at)


def lower(shape: Transformer, w: dict[str, Array]) -> Float[Array, "*L d f"]:
    """What of the MLP reads the stream: its lower matrix, or both of a gated one."""
    return jnp.concatenate([w["gate"], w["up"]], -1) if shape.mlp == "gated" else w["up"]


def letters(shape: Transformer, params: PyTree, batch: Batch) -> Letters:
    """JoMA's letters of every layer."""
    at = places(shape, batch, shape.dtype)

    def of(block: BlockActivations) -> Letters:
        z = scores(shape, block).astype(shape.dtype)
        b = jnp.einsum("bn,bmt,bhnm->ht", at.weight, at.token, block.attention)
        side = of_pairs(at, theory.conserved_side(z, shape.attention))
        rate, u = rates(shape, block, at), writings(shape, block, at)
        return Letters(of_pairs(at, z), side, b, rate, u, lower(shape, block.weights))

    return reduce_blocks(shape, params, batch.tokens, of)[1]


def rates(shape: Transformer, block: BlockActivations, at: Places) -> Float[Array, "h M"]:
    """How fast a push on a token's score moves it, through the matrices of queries and keys.

    The slope of the score in either matrix is that in what the matrix gives, times what it reads. Means over queries and over keys
    are taken separately; rotary positions, which keep lengths, are left out.
    """
    w, x = block.weights, entering(shape, block.weights, "attention_norm", block.before)
    q, k = block.query, jnp.repeat(block.key, shape.heads // shape.key_heads, axis=-2)
    query, keys = jnp.einsum("bn,bnhe->he", at.weight, q), of_keys(at, k)  # means
    by_query, by_key = keys, jnp.broadcast_to(query[..., None], keys.shape)  # slopes in queries, and in keys
    if shape.query_key_norm:
        raw_q, raw_k, _ = heads(dataclasses.replace(shape, query_key_norm=False), block.before, w)
        raw_k = jnp.repeat(raw_k, shape.heads // shape.key_heads, axis=-2)
        back_q, back_k = (
            jax.vjp(lambda y, name=name: rms_norm(y, w[name], shape.epsilon), raw)[1]
            for raw, name in ((raw_q, "q_norm"), (raw_k, "k_norm"))
        )
        each = jax.vmap(lambda key: jnp.einsum("bn,bnhe->he", at.weight, back_q(jnp.broadcast_to(key, q.shape))[0]), -1, -1)
        by_query, by_key = each(keys), of_keys(at, back_k(jnp.broadcast_to(query, k.shape))[0])
    reads_query = jnp.sum(jnp.square(jnp.einsum("bn,bnd->d", at.weight, x)))
    reads_key = jnp.sum(jnp.square(of_keys(at, x[:, :, None])[0]), 0)
    square_q, square_k = (jnp.sum(jnp.square(slope), 1) for slope in (by_query, by_key))
    return (reads_query * square_q + reads_key * square_k) / shape.entries


def writings(shape: Transformer, block: BlockActivations, at: Places) -> Float[Array, "h M d"]:
    """What a token as the key writes into the stream for weight 1, as the MLP reads it: u."""
    w = block.weights
    value = of_keys(at, jnp.repeat(block.value, shape.heads // shape.key_heads, axis=-2))
    if shape.output_gate:
        gate = jax.nn.sigmoid(product(shape, w, "output_gate", entering(shape, w, "attention_norm", block.before)))
        value = value * jnp.einsum("bn,bna->a", at.weight, gate).reshape(shape.heads, shape.entries, 1)
    matrix = w["o"] if shape.project else jnp.eye(shape.width, dtype=value.dtype)
    u = jnp.einsum("het,hed->htd", value, matrix.reshape(shape.heads, shape.entries, -1)) * jnp.asarray(shape.residual, value.dtype)
    if shape.norm == "none":
        return u
    stream = jnp.asarray(shape.skip, value.dtype) * block.before + block.written
    if shape.norm == "layer":
        stream, u = (y - jnp.mean(y, -1, keepdims=True) for y in (stream, u))
    size = jax.lax.rsqrt(jnp.mean(jnp.square(stream), -1) + jnp.asarray(shape.epsilon, value.dtype))
    return u * jnp.sum(at.weight * size) * w["mlp_norm" if shape.norm_place == "pre" else "attention_norm"]
