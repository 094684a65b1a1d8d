r"""Whole texts at once: what a streaming cache gives, by pairwise offsets; the window with recomputation; scores of the whole text.

In the cache, query i is at :math:`\min(i, L - 1)`, its recent key j at that less :math:`i - j`, a sink s at s. So the offset is
:math:`i - j` for recent keys and :math:`\min(i, L - 1) - s` for sinks, and one pass with these offsets and this mask equals the
scan:

.. math:: \text{mask}_{ij} = (j \le i) \wedge \bigl(j < S \vee i - j < L - S\bigr)

Source: arXiv:2309.17453, figures 1 and 4; the pairwise form: derived.
Letters: T tokens, V tokens of the vocabulary, h heads, g heads of keys and values, L keys in the cache, S sinks.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PyTree

from jaxdyn.errors import UsageError, whole
from jaxdyn.nn import attention
from jaxdyn.nn.cache.policy import BLIND, Policy
from jaxdyn.nn.cache.state import fits
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.tokens import checked
from jaxdyn.nn.transformer import (
    apply,
    blocks_of,
    embedded,
    expanded,
    heads,
    last,
    merged,
    near,
    read,
    trunk,
    turned,
    with_sink,
    without_sink,
)

__all__ = ["global_scores", "prefill", "prefill_residual", "recompute"]


def prefill(shape: Transformer, params: PyTree, policy: Policy, tokens: Integer[Array, "*b T"]) -> Float[Array, "*b T V"]:
    """Logits of dense, window and streaming caches for whole texts, after the sink token of a network that has one.

    Memory grows with the square of T.

    Raises:
        UsageError: for a policy that looks at attention, tokens that are no array of token numbers, and more of them than a dense
            cache or learned positions have room for.
    """
    return read(shape, params, prefill_residual(shape, params, policy, tokens))


def prefill_residual(shape: Transformer, params: PyTree, policy: Policy, tokens: Integer[Array, "*b T"]) -> Float[Array, "*b T d"]:
    """As :func:`prefill`, with the last residual stream after its norm instead of logits."""
    if policy.kind not in BLIND:
        raise UsageError(f"kind={policy.kind!r} is not allowed: what it keeps depends on the attention; decode it token by token")
    tokens = with_sink(shape, checked(tokens, shape.vocabulary, least=1))
    fits(shape, policy, tokens.shape[-1])
    at = jnp.arange(tokens.shape[-1], dtype=jnp.int32)
    sinks = policy.sinks if policy.kind == "streaming" else 0
    first, seen = at < sinks, attention.causal_mask(at.size)
    if policy.kind != "dense":
        seen &= first | (at[:, None] - at < policy.size - sinks)
    here = jnp.minimum(at, policy.size - 1) if policy.positions == "cache" else at
    seen = near(shape, seen, jnp.where(first, here[:, None], at[:, None]) - at)
    x = embedded(shape, params, tokens, here)

    def one(x: Array, w: dict[str, Array]) -> tuple[Array, None]:
        q, k, v = heads(shape, x, w)
        k, v = (jnp.repeat(part, shape.heads // shape.key_heads, axis=-2) for part in (k, v))
        scores = _scores(shape, q, k, at, here, first)
        b = attention.weights(scores, shape.attention, seen, None if "sink" not in w else w["sink"][:, None])
        out = jnp.einsum("...hnm,...mhf->...nhf", b.astype(v.dtype), v, preferred_element_type=b.dtype).astype(v.dtype)
        return merged(shape, x, out, w), None

    x, _ = jax.lax.scan(one, x, expanded(shape, blocks_of(shape, params)))
    return without_sink(shape, last(shape, params, x))


def _scores(
    shape: Transformer,
    q: Float[Array, "*b T h e"],
    k: Float[Array, "*b T h e"],
    at: Int[Array, " T"],
    here: Int[Array, " T"],
    first: Bool[Array, " T"],
) -> Float[Array, "*b h T T"]:
    """Scores with offsets i - j for recent keys, and from the query's place in the cache for sinks."""
    wide = jnp.promote_types(q.dtype, jnp.float32)
    if shape.position == "alibi":
        near, far = (attention.alibi(p, at, shape.heads, shape.dtype) for p in (at, here))
        return _dot(q, k, wide) + jnp.where(first, far, near)
    if shape.position != "rotary":
        return _dot(q, k, wide)
    near, far = (_dot(turned(shape, q, p), turned(shape, k, at), wide) for p in (at, here))
    return jnp.where(first, far, near)


def _dot(q: Float[Array, "*b T h e"], k: Float[Array, "*b T h e"], wide: jnp.dtype) -> Float[Array, "*b h T T"]:
    return jnp.einsum("...nhe,...mhe->...hnm", q, k, preferred_element_type=wide) * q.shape[-1] ** -0.5


def recompute(shape: Transformer, params: PyTree, size: int, tokens: Integer[Array, " T"]) -> Float[Array, "T V"]:
    """Logits of a window whose last ``size`` tokens are encoded from scratch at every step, at positions from 0 on.

    A sink token is the first of them in every window.

    Raises:
        UsageError: for tokens that are no text, and a size that leaves no room for one.
    """
    tokens = jnp.asarray(checked(tokens, shape.vocabulary, axes=1, least=1))
    length = tokens.shape[0]
    size = min(whole("size", size, least=1 + shape.sink_token) - shape.sink_token, length)

    def one(i: Int[Array, ""]) -> Float[Array, " V"]:
        first = jnp.maximum(i - size + 1, 0)
        window = jax.lax.dynamic_slice(tokens, (first,), (size,))
        return read(shape, params, trunk(shape, params, window[None])[0, i - first])

    return jax.lax.map(one, jnp.arange(length, dtype=jnp.int32))


def global_scores(shape: Transformer, params: PyTree, tokens: Integer[Array, " T"]) -> Float[Array, "layers g N"]:
    """Attention that each token gets in the whole text, from all queries, for ``oracle_global``. Not causal.

    The first is the sink token, if there is one.

    Raises:
        UsageError: for tokens that are no text, and more of them than learned positions.
    """
    tokens = checked(tokens, shape.vocabulary, axes=1, least=1)
    _, seen = apply(shape, params, tokens[None], observe=("attention",))
    received = jnp.sum(seen["attention"][:, 0], -2)  # [layers, h, T]
    return jnp.sum(received.reshape(shape.depth, shape.key_heads, -1, received.shape[-1]), 2)
