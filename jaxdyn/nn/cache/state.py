r"""The cache: arrays of fixed size, and attention of one query to what is in them.

Keys are stored before rotation; a key's position is its number among the keys that are kept (0 for the oldest), the query's is that
of the current token, n - 1 of n keys. A new key takes its victim's place; whatever came after the victim moves down by one.

.. math:: o_h = \sum_{j \in \text{cache}} b_{hj} v_j, \qquad F_j \leftarrow \gamma F_j + \sum_{h \in \text{group}} b_{hj}

Source: arXiv:2309.17453, section 3.2, for positions; arXiv:2306.14048, section 4, for the scores F; grouped queries share a cache.
Letters: h heads, g heads of keys and values of e numbers, L places.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.nn import attention
from jaxdyn.nn.cache.policy import SCORED, Policy, victim
from jaxdyn.nn.decoder import Decoder, turned

__all__ = ["Bytes", "Layer", "State", "attend", "bytes_held", "start"]


class Layer(NamedTuple):
    """What one layer keeps; ``born`` is -1 where there is nothing yet."""

    key: Float[Array, "*layers g L e"]
    value: Float[Array, "*layers g L e"]
    born: Int[Array, "*layers g L"]
    position: Int[Array, "*layers g L"]
    score: Float[Array, "*layers g L"]


class State(NamedTuple):
    """All layers of one stream, and how many tokens it has had."""

    layers: Layer
    time: Int[Array, ""]


class Bytes(NamedTuple):
    """Bytes of keys and values, and of what says which they are."""

    keys_values: int
    books: int


def start(shape: Decoder, policy: Policy) -> State:
    """The empty cache of one stream."""
    places = (shape.depth, shape.key_heads, policy.size)
    key = jnp.zeros((*places, shape.entries), shape.dtype)
    born = jnp.full(places, -1, jnp.int32)
    score = jnp.zeros(places, jnp.promote_types(shape.dtype, jnp.float32))
    return State(Layer(key, jnp.zeros_like(key), born, jnp.zeros(places, jnp.int32), score), jnp.zeros((), jnp.int32))


def bytes_held(shape: Decoder, policy: Policy) -> Bytes:
    r"""Bytes of one stream's cache: keys and values are :math:`2 \cdot \text{depth} \cdot g\, e\, L` numbers."""
    layers = jax.eval_shape(lambda: start(shape, policy)).layers
    size = {name: x.size * x.dtype.itemsize for name, x in layers._asdict().items()}
    return Bytes(size["key"] + size["value"], size["born"] + size["position"] + size["score"])


def attend(
    shape: Decoder,
    policy: Policy,
    layer: Layer,
    time: Int[Array, ""],
    query: Float[Array, "h e"],
    key: Float[Array, "g e"],
    value: Float[Array, "g e"],
    *,
    sink: Float[Array, " h"] | None = None,
    given: Float[Array, "g T"] | None = None,
    random: PRNGKeyArray | None = None,
) -> tuple[Float[Array, "h e"], Layer]:
    """Output of one layer's heads for the current token, and the cache with it.

    Args:
        shape: of the network.
        policy: which key goes when the cache is full.
        layer: the cache before.
        time: number of the current token.
        query: its queries, without positions.
        key: its keys, without positions.
        value: its values.
        sink: the sink's logit of every head, for ``sink_bias``.
        given: scores for ``oracle_global``.
        random: a key for ``random``.
    """
    layer = _inserted(policy, layer, time, key, value, given, random)
    here = jnp.minimum(time, policy.size - 1) if policy.positions == "cache" else time
    at = layer.position if policy.positions == "cache" else layer.born
    g, share = key.shape[0], query.shape[0] // key.shape[0]
    one = jnp.broadcast_to(here, (g, share))
    k = turned(shape, layer.key[:, :, None], at)[:, :, 0]
    q = turned(shape, query.reshape(g, share, 1, -1), one)[:, :, 0]
    scores = jnp.einsum("gse,gle->gsl", q, k, preferred_element_type=layer.score.dtype) * q.shape[-1] ** -0.5
    if shape.position == "alibi":
        slope = attention.slopes(shape.heads, shape.dtype).reshape(g, share, 1)
        scores = scores - slope * (here - at)[:, None].astype(slope.dtype)
    full = jnp.arange(policy.size, dtype=jnp.int32) <= time
    mask = jnp.broadcast_to(full, (share, policy.size))
    b = attention.weights(scores, shape.attention, mask, None if sink is None else sink.reshape(g, share))
    out = jnp.einsum("gsl,gle->gse", b.astype(layer.value.dtype), layer.value, preferred_element_type=b.dtype)
    decay = policy.decay if policy.kind in SCORED and policy.score == "decay" else 1
    score = (decay * layer.score + jnp.sum(b, 1)).astype(layer.score.dtype)
    return out.astype(value.dtype).reshape(query.shape), layer._replace(score=score)


def _inserted(
    policy: Policy,
    layer: Layer,
    time: Int[Array, ""],
    key: Float[Array, "g e"],
    value: Float[Array, "g e"],
    given: Float[Array, "g T"] | None,
    random: PRNGKeyArray | None,
) -> Layer:
    """The cache with the current token, in the place of its victim if it was full."""
    chosen = victim(policy, layer.born, layer.score, time, given=given, key=random)
    full = time >= policy.size
    place = jnp.where(full, chosen, time.astype(jnp.int32))
    here = jnp.arange(policy.size, dtype=jnp.int32) == place[:, None]  # [g, L]
    gone = jnp.take_along_axis(layer.position, place[:, None], 1)
    moved = jnp.where(full & (layer.position > gone), layer.position - 1, layer.position)
    rows = jnp.arange(key.shape[0])
    return Layer(
        key=layer.key.at[rows, place].set(key.astype(layer.key.dtype)),
        value=layer.value.at[rows, place].set(value.astype(layer.value.dtype)),
        born=jnp.where(here, time, layer.born).astype(layer.born.dtype),
        position=jnp.where(here, jnp.minimum(time, policy.size - 1), moved).astype(layer.position.dtype),
        score=jnp.where(here, 0, layer.score),
    )
