r"""Attention as one family of pure functions of queries, keys and values.

.. math:: s_{ij} = \frac{q_i \cdot k_j}{\sqrt e} + c_{ij}, \qquad o_i = \sum_{j \in \text{mask}(i)} b_{ij} v_j

with weights b of one of the kinds

=========== ======================================================= =======
softmax     :math:`e^{s_{ij}} / \sum_k e^{s_{ik}}`                  sum 1
zero_sink   :math:`e^{s_{ij}} / (1 + \sum_k e^{s_{ik}})`            below 1
sink_bias   :math:`e^{s_{ij}} / (e^{\beta_h} + \sum_k e^{s_{ik}})`  below 1
exp         :math:`e^{s_{ij}}`
linear      :math:`s_{ij}`
sigmoid     :math:`1 / (1 + e^{-s_{ij}})`
relu        :math:`\max(s_{ij}, 0) / t_i`, t the keys that i sees
=========== ======================================================= =======

A key may stand for several, or for a share of one (``counts``, c): :math:`e^{s_{ij}}` is then :math:`c_{ij} e^{s_{ij}}`, and so
with all kinds. A function of one's own, ``"module:function"``, has the scores and the mask as its arguments and gives the weights.

A learnable sink token and a bias of keys and values are keys of their own (``extra``); positions are rotations (:func:`rotate`) or
a term c of the scores (:func:`alibi`).

Source: arXiv:2310.00535 (JoMA), section 2, for softmax, exp and linear; arXiv:1706.03762 for the scale; arXiv:2309.17453, section
3.3, for the zero sink and the sink token; the model card of gpt-oss (2025) for the learned bias; arXiv:2410.10781 for the others.
Letters: h heads of e numbers, n positions (queries), m positions (keys), x extra keys; leading axes are batches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.errors import UsageError, shown
from jaxdyn.nn import choices
from jaxdyn.nn.rotary import Scaling, slowed

__all__ = ["KINDS", "alibi", "angles", "attend", "causal_mask", "rotate", "slopes", "turn", "weights"]

KINDS = ("softmax", "exp", "linear", "zero_sink", "sink_bias", "sigmoid", "relu")


def causal_mask(n: int) -> Bool[Array, "n n"]:
    """Which keys (columns) a query (row) may see: itself and all before it."""
    return jnp.tri(n, dtype=bool)


def weights(
    scores: Float[Array, "*batch m"],
    kind: Any = "softmax",
    mask: Bool[Array, "*#batch m"] | None = None,
    sink: Float[Array, "*#batch"] | None = None,
    counts: Float[Array, "*#batch m"] | None = None,
) -> Float[Array, "*batch m"]:
    """Attention weights b of scores s; a masked key has weight 0, also where a query sees no key at all.

    Sums run in float32 at least; the result has the scores' dtype.

    Args:
        scores: the scores; all axes but the last, among them the queries, are batches.
        kind: one of :data:`KINDS`, a switch between them, or a function of one's own (:mod:`jaxdyn.nn.choices`).
        mask: which keys a query sees, True or False; None: all. A term of the scores (0 and -inf) is no mask, but a bias.
        sink: the logit of the sink of every query, for ``sink_bias`` alone.
        counts: how many keys each of them stands for, at least 0; None: one. A key of which there is none has weight 0.

    Raises:
        UsageError: if the kind is none of :data:`KINDS`, a sink is missing or of no use, or a mask is not of truth values.
    """
    named = choices.names(kind)
    choices.check("attention", kind, KINDS)
    if ("sink_bias" in named) != (sink is not None):
        raise UsageError(f"attention={', '.join(named)!r}: the logit of a sink goes with sink_bias, and with no other kind")
    if mask is not None and mask.dtype != bool:
        raise UsageError(f"mask={shown(mask)} is not allowed: it is True where a query sees a key, and False elsewhere")
    s = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    if counts is not None:
        if any(name not in KINDS for name in named):
            raise UsageError(f"attention={', '.join(named)!r}: counts go with {', '.join(KINDS)}, not with functions of your own")
        mask = counts > 0 if mask is None else mask & (counts > 0)
        counts = counts.astype(s.dtype)
    forms = _forms(s, mask, sink, counts) | {name: functools.partial(_own, name, s, mask) for name in named if name not in KINDS}
    return choices.applied("attention", kind, forms).astype(scores.dtype)


def _forms(
    s: Float[Array, "*batch m"],
    mask: Bool[Array, "*#batch m"] | None,
    sink: Float[Array, "*#batch"] | None,
    counts: Float[Array, "*#batch m"] | None = None,
) -> dict[str, Callable[[], Array]]:
    """The weights of every kind."""

    def alone(form: Callable[[Array], Array]) -> Array:
        seen = s if mask is None else jnp.where(mask, s, 0)  # else a score that nobody sees could overflow, and spoil gradients
        return _masked(form(seen) if counts is None else counts * form(seen), mask)

    def shared() -> Array:
        number = jnp.ones((), s.dtype) if counts is None else counts
        seen = s.shape[-1] if mask is None else jnp.sum(jnp.where(mask, number, 0), -1, keepdims=True).astype(s.dtype)
        return alone(lambda s: jax.nn.relu(s) / (seen if mask is None else jnp.where(seen > 0, seen, 1)))

    def beside(logit: Array | None) -> Array:
        return _with_sink(s, mask, jnp.zeros((1, 1), s.dtype) if logit is None else logit[..., None].astype(s.dtype), counts)

    return {
        "softmax": lambda: _softmax(s, mask) if mask is None or counts is None else _counted(s, mask, counts),
        "exp": lambda: alone(jnp.exp),
        "linear": lambda: alone(lambda s: s),
        "zero_sink": lambda: beside(None),
        "sink_bias": lambda: beside(sink),
        "sigmoid": lambda: alone(jax.nn.sigmoid),
        "relu": shared,
    }


def _own(name: str, s: Float[Array, "*batch m"], mask: Bool[Array, "*#batch m"] | None) -> Float[Array, "*batch m"]:
    """The weights that a function of one's own gives; the mask holds for it, too."""
    return _masked(choices.shape_keeping("attention", name)(s, jnp.ones(s.shape, bool) if mask is None else mask), mask)


def _counted(
    s: Float[Array, "*batch m"], mask: Bool[Array, "*#batch m"], counts: Float[Array, "*#batch m"]
) -> Float[Array, "*batch m"]:
    """The softmax over keys that stand for several each."""
    top = jax.lax.stop_gradient(jnp.max(jnp.where(mask, s, -jnp.inf), -1, keepdims=True))
    e = jnp.where(mask, counts, 0) * jnp.exp(jnp.where(mask, s - top, 0))
    total = jnp.sum(e, -1, keepdims=True)
    return e / jnp.where(total > 0, total, 1)


def attend(
    query: Float[Array, "*batch n h e"],
    key: Float[Array, "*batch m h e"],
    value: Float[Array, "*batch m h f"],
    *,
    kind: Any = "softmax",
    mask: Bool[Array, "*#heads n m"] | None = None,
    bias: Float[Array, "*#heads n m"] | None = None,
    sink: Float[Array, " h"] | None = None,
    extra: tuple[Float[Array, "x h e"], Float[Array, "x h f"]] | None = None,
    drop: Callable[[Array], Array] = lambda b: b,
) -> tuple[Float[Array, "*batch n h f"], Float[Array, "*batch h n all"]]:
    """Outputs o and weights b of all heads, in float32 at least.

    Args:
        query: queries.
        key: keys.
        value: values.
        kind: as of :func:`weights`.
        mask: which keys a query sees, for all heads or with an axis of them before n.
        bias: a term of the scores, shaped as the mask.
        sink: the sink's logit of every head, for ``sink_bias``.
        extra: keys and values that every query sees, whatever the mask (learned ones, a sink token's). They come first in b.
        drop: acts on the weights that mix the values, not on those returned.
    """
    wide = jnp.promote_types(query.dtype, jnp.float32)
    if extra is not None:
        key, value = (
            jnp.concatenate([jnp.broadcast_to(more, (*x.shape[:-3], *more.shape)).astype(x.dtype), x], -3)
            for more, x in zip(extra, (key, value), strict=True)
        )
        count = extra[0].shape[0]
        mask, bias = (None if x is None else _widened(x, count, fill) for x, fill in ((mask, True), (bias, 0.0)))
    scores = jnp.einsum("...nhe,...mhe->...hnm", query, key, preferred_element_type=wide) * query.shape[-1] ** -0.5
    b = weights(scores if bias is None else scores + bias, kind, mask, None if sink is None else sink[:, None])
    low = jnp.promote_types(query.dtype, value.dtype)
    out = jnp.einsum("...hnm,...mhf->...nhf", drop(b).astype(low), value, preferred_element_type=jnp.promote_types(low, wide))
    return out.astype(low), b


def rotate(
    x: Float[Array, "*batch n h e"], base: float | Float[Array, ""] = 10_000.0, positions: Int[Array, "*#batch n"] | None = None
) -> Float[Array, "*batch n h e"]:
    r"""Rotary positions: the pair (j, j + e/2) of position i turned by the angle :math:`i\,\text{base}^{-2j/e}`.

    Scores of rotated queries and keys depend on the difference of their positions only. Source: arXiv:2104.09864, section 3.2
    (Departure: halves instead of neighbours are paired, a relabelling).

    Args:
        x: queries or keys.
        base: of the angles.
        positions: of the n vectors; None: 0, 1, 2, …

    Raises:
        UsageError: if e is odd.
    """
    exact = jnp.promote_types(x.dtype, jnp.float32)  # in bfloat16 positions beyond 256 have no angle of their own
    at = jnp.arange(x.shape[-3], dtype=jnp.int32) if positions is None else positions
    return turn(x.astype(exact), *angles(at, x.shape[-1], base, exact)).astype(x.dtype)


def angles(
    positions: Int[Array, "*batch n"],
    entries: int,
    base: float | Float[Array, ""] = 10_000.0,
    dtype: DTypeLike = "float32",
    scaling: Scaling | None = None,
) -> tuple[Float[Array, "*batch n half"], Float[Array, "*batch n half"]]:
    """Cosines and sines of the angles of :func:`rotate`; the rates may be rescaled (:mod:`jaxdyn.nn.rotary`).

    Raises:
        UsageError: if the number of entries is odd.
    """
    if entries % 2:
        raise UsageError(f"rotary positions need an even number of entries per head, got {entries}")
    rate = slowed(base ** (-jnp.arange(0, entries, 2, dtype=dtype) / entries), scaling)
    angle = positions.astype(dtype)[..., None] * rate
    return jnp.cos(angle), jnp.sin(angle)


def turn(
    x: Float[Array, "*batch n h e"], cos: Float[Array, "*#batch n half"], sin: Float[Array, "*#batch n half"]
) -> Float[Array, "*batch n h e"]:
    """Queries or keys turned by the angles of their positions; entries beyond those of the angles stay as they are."""
    cos, sin = cos[..., None, :], sin[..., None, :]
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    both = [a * cos - b * sin, a * sin + b * cos]
    return jnp.concatenate([*both, rest] if rest.shape[-1] else both, -1)


def alibi(
    queries: Int[Array, "*batch n"], keys: Int[Array, "*batch m"], heads: int, dtype: str = "float32"
) -> Float[Array, "*batch h n m"]:
    r"""The term :math:`-2^{-8 (i + 1) / h} (p_q - p_k)` of the scores of head i, from the positions of queries and keys.

    Source: arXiv:2108.12409, section 3 (Departure: the same slopes if h is no power of two).
    """
    slope = slopes(heads, dtype)
    return -slope[:, None, None] * (queries[..., :, None] - keys[..., None, :]).astype(slope.dtype)[..., None, :, :]


def slopes(heads: int, dtype: str = "float32") -> Float[Array, " h"]:
    """The slope of every head in :func:`alibi`, in float32 at least."""
    return 2.0 ** (-8 * jnp.arange(1, heads + 1, dtype=jnp.promote_types(dtype, jnp.float32)) / heads)


def _masked(b: Float[Array, "*batch m"], mask: Bool[Array, "*#batch m"] | None) -> Float[Array, "*batch m"]:
    return b if mask is None else jnp.where(mask, b, 0)


def _softmax(s: Float[Array, "*batch m"], mask: Bool[Array, "*#batch m"] | None) -> Float[Array, "*batch m"]:
    """The softmax over the keys that a query sees; a query that sees none gets zeros instead of 0/0."""
    if mask is None:
        return _shares(s)
    some = jnp.any(mask, -1, keepdims=True)
    return jnp.where(some, _shares(jnp.where(mask | ~some, s, -jnp.inf)), 0)


@jax.custom_jvp
def _shares(s: Float[Array, "*batch m"]) -> Float[Array, "*batch m"]:
    return jax.nn.softmax(s, -1)


@_shares.defjvp
def _shares_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The tangent b s' - b sum(b s'). Its transpose has b g twice: it is made once, and a sum of it alone is fast on CPU."""
    b, ds = _shares(*primals), tangents[0]
    return b, b * ds + b * -jnp.sum(b * ds, -1, keepdims=True)


def _with_sink(
    s: Float[Array, "*batch m"],
    mask: Bool[Array, "*#batch m"] | None,
    sink: Float[Array, "*#batch 1"],
    counts: Float[Array, "*#batch m"] | None,
) -> Float[Array, "*batch m"]:
    """The softmax with one more logit in its sum. That logit is in the maximum, too: otherwise shifted logits overflow."""
    s = s if mask is None else jnp.where(mask, s, -jnp.inf)
    top = jax.lax.stop_gradient(jnp.maximum(jnp.max(s, -1, keepdims=True), sink))
    e = jnp.exp(s - top) if counts is None else counts * jnp.exp(s - top)
    return e / (jnp.exp(sink - top) + jnp.sum(e, -1, keepdims=True))


def _widened(x: Array, count: int, fill: float | bool) -> Array:
    """Columns for further keys before all others."""
    return jnp.concatenate([jnp.full((*x.shape[:-1], count), fill, x.dtype), x], -1)
