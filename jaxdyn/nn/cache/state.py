r"""The cache: arrays of fixed size, and attention of one query to what is in them.

A key's position is its number among the keys that are kept (0 for the oldest), the query's is that of the current token, n - 1 of n
keys. A new key takes its victim's place; whatever came after the victim moves down by one. Keys are stored before rotation; in
caches where positions never change, after it. A network with a window sees keys of the cache at positions within it.

.. math:: o_h = \sum_{j \in \text{cache}} b_{hj} v_j, \qquad F_j \leftarrow \gamma F_j + \sum_{h \in \text{group}} b_{hj}

Source: arXiv:2309.17453, section 3.2, for positions; arXiv:2306.14048, section 4, for the scores F; grouped queries share a cache.
Letters: h heads, g heads of keys and values of e numbers, L places.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError, require, shown
from jaxdyn.nn import attention
from jaxdyn.nn.cache.policy import BLIND, SCORED, STATIC, TRACED, Policy, victim
from jaxdyn.nn.config import Transformer
from jaxdyn.nn.transformer import angles, near, turned

__all__ = [
    "Bytes",
    "Layer",
    "Owner",
    "Placement",
    "State",
    "attend",
    "bytes_held",
    "fits",
    "fitting",
    "placed",
    "speaks",
    "start",
    "stays",
]


class Layer(NamedTuple):
    """What one layer keeps; ``born`` is -1 where there is nothing yet."""

    key: Float[Array, "*layers g L e"]
    value: Float[Array, "*layers g L e"]
    born: Int[Array, "*layers g L"]
    position: Int[Array, "*layers g L"]
    score: Float[Array, "*layers g L"]


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Owner:
    """Whose cache it is: the network and the static part of the policy, which say how to read the arrays. It has none itself."""

    shape: Transformer
    policy: tuple[Any, ...]


class State(NamedTuple):
    """All layers of one stream, how many tokens it has had, and whose it is."""

    layers: Layer
    time: Int[Array, ""]
    owner: Owner


class Placement(NamedTuple):
    """What a policy does with the current token; one row for all heads of keys, or one for each."""

    place: Int[Array, " rows"]  # that the token takes
    born: Int[Array, "rows L"]  # afterwards
    position: Int[Array, "rows L"]  # afterwards
    angles: tuple[Float[Array, " rows #L half"], Float[Array, " rows #L half"]] | None  # cosines and sines of rotary positions


class Bytes(NamedTuple):
    """Bytes of keys and values, and of what says which they are."""

    keys_values: int
    books: int


def start(shape: Transformer, policy: Policy) -> State:
    """The empty cache of one stream."""
    places = (shape.depth, shape.key_heads, policy.size)
    key = jnp.zeros((*places, shape.entries), shape.dtype)
    born = jnp.full(places, -1, jnp.int32)
    score = jnp.zeros(places, jnp.promote_types(shape.dtype, jnp.float32))
    layers = Layer(key, jnp.zeros_like(key), born, jnp.zeros(places, jnp.int32), score)
    return State(layers, jnp.zeros((), jnp.int32), _owner(shape, policy))


def fits(shape: Transformer, policy: Policy, count: int) -> None:
    """Raises UsageError if tokens are more than a dense cache has places or learned positions last, and for a batch of policies."""
    require(shape, shape.causal, "token by token only causal networks can be read", "causal")
    for name in TRACED:
        if jnp.ndim(getattr(policy, name)):
            raise UsageError(f"{name}={shown(getattr(policy, name))} is not allowed: a policy has one number; jax.vmap takes many")
    if policy.kind == "dense" and count > policy.size:
        raise UsageError(f"size={policy.size} is not allowed: a dense cache has a place for each of {count} tokens")
    reach = count if policy.positions == "absolute" else min(count, policy.size)
    if shape.position == "learned" and reach > shape.length:
        raise UsageError(f"this network has learned {shape.length} positions (length), the policy uses {reach}")


def speaks(shape: Transformer) -> None:
    """Raises UsageError for a network whose logits are not those of the next token."""
    tokens = "logits of the next token are one for each token"
    require(shape, shape.logits == shape.vocabulary, tokens, "outputs", "vocabulary")


def fitting(shape: Transformer, policy: Policy, state: State) -> State:
    """The state, if it is one stream's of this network and this policy, whose traced numbers may be others than before.

    Raises:
        UsageError: for another network or policy, and other shapes or dtypes.
    """
    if not isinstance(state, State):
        raise UsageError(f"state={shown(state)} is not allowed: it is what start, step, decode or losses gave")
    wanted = _owner(shape, policy)
    if state.owner.policy != wanted.policy:
        pairs = zip(STATIC, state.owner.policy, wanted.policy, strict=True)
        changed = ", ".join(f"{name}={old}, not {new}" for name, old, new in pairs if old != new)
        raise UsageError(f"this state is not allowed: it was made by another policy, with {changed}")
    if state.owner != wanted:
        raise UsageError("this state is not allowed: it was made by another network than shape says")
    expected = jax.eval_shape(lambda: start(shape, policy))
    for name, array, like in (*zip(Layer._fields, state.layers, expected.layers, strict=True), ("time", state.time, expected.time)):
        given, needed = (f"{x.dtype}[{','.join(map(str, x.shape))}]" if hasattr(x, "dtype") else shown(x) for x in (array, like))
        if given != needed:
            raise UsageError(
                f"this state is not allowed: its {name} is {given}, a stream's is {needed}; jax.vmap takes many streams"
            )
    return state


def _owner(shape: Transformer, policy: Policy) -> Owner:
    """Layers in a loop or written out leave the same cache; of what is traced nothing is known."""
    return Owner(dataclasses.replace(shape.known, scan=True), tuple(getattr(policy, name) for name in STATIC))


def bytes_held(shape: Transformer, policy: Policy) -> Bytes:
    r"""Bytes of one stream's cache: keys and values are :math:`2 \cdot \text{depth} \cdot g\, e\, L` numbers."""
    layers = jax.eval_shape(lambda: start(shape, policy)).layers
    size = {name: x.size * x.dtype.itemsize for name, x in layers._asdict().items()}
    return Bytes(size["key"] + size["value"], size["born"] + size["position"] + size["score"])


def attend(
    shape: Transformer,
    policy: Policy,
    layer: Layer,
    time: Int[Array, ""],
    query: Float[Array, "h e"],
    key: Float[Array, "g e"],
    value: Float[Array, "g e"],
    *,
    placement: Placement | None = None,
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
        placement: what the policy does now, from :func:`placed`; by default it is found here.
        sink: the sink's logit of every head, for ``sink_bias``.
        given: scores for ``oracle_global``.
        random: a key for ``random``.
    """
    placement = placed(shape, policy, layer, time, given=given, random=random) if placement is None else placement
    new = _turned(key[:, None], placement.angles)[:, 0] if placement.angles is not None and stays(policy) else key
    layer = _inserted(layer, placement, new, value)
    here = jnp.minimum(time, policy.size - 1) if policy.positions == "cache" else time
    g, share = key.shape[0], query.shape[0] // key.shape[0]
    one = jnp.broadcast_to(here, (g, share))
    q = turned(shape, query.reshape(g, share, 1, -1), one)[:, :, 0]
    k = layer.key if placement.angles is None or stays(policy) else _turned(layer.key, placement.angles)
    scores = jnp.einsum("gse,gle->gsl", q, k, preferred_element_type=layer.score.dtype) * q.shape[-1] ** -0.5
    distance = here - (placement.position if policy.positions == "cache" else placement.born)  # [rows, L]
    if shape.position == "alibi":
        slope = attention.slopes(shape.heads, shape.dtype).reshape(g, share, 1)
        scores = scores - slope * distance[:, None].astype(slope.dtype)
    full = jnp.arange(policy.size, dtype=jnp.int32) <= time
    mask = jnp.broadcast_to(full, (share, policy.size))
    if shape.window is not None or not shape.sees_itself:
        mask = near(shape, mask, distance[:, None])
    b = attention.weights(scores, shape.attention, mask, None if sink is None else sink.reshape(g, share))
    out = jnp.einsum("gsl,gle->gse", b.astype(layer.value.dtype), layer.value, preferred_element_type=b.dtype)
    decay = policy.decay if policy.kind in SCORED and policy.score == "decay" else 1
    score = (decay * layer.score + jnp.sum(b, 1)).astype(layer.score.dtype)
    return out.astype(value.dtype).reshape(query.shape), layer._replace(score=score)


def placed(
    shape: Transformer,
    policy: Policy,
    layer: Layer,
    time: Int[Array, ""],
    *,
    given: Float[Array, "g T"] | None = None,
    random: PRNGKeyArray | None = None,
) -> Placement:
    """Where the current token goes, what the places then hold, and the angles of their positions.

    Policies that do not look at attention (:data:`BLIND`) do the same in all layers and heads: their placement has one row for all,
    and one placement serves all layers.
    """
    born, position = (x[:1] if policy.kind in BLIND else x for x in (layer.born, layer.position))
    full, place = time >= policy.size, time.astype(jnp.int32)[None]
    if policy.kind != "dense":
        place = jnp.where(full, victim(policy, born, layer.score, time, given=given, key=random), place)
    here = jnp.arange(policy.size, dtype=jnp.int32) == place[:, None]  # [rows, L]
    gone = jnp.take_along_axis(position, place[:, None], 1)
    moved = jnp.where(full & (position > gone), position - 1, position)
    born = jnp.where(here, time, born).astype(born.dtype)
    position = jnp.where(here, jnp.minimum(time, policy.size - 1), moved).astype(position.dtype)
    return Placement(place, born, position, _angles(shape, policy, time, position))


def stays(policy: Policy) -> bool:
    """Whether a key's position never changes; then it is turned once, when it comes."""
    return policy.kind == "dense" or policy.positions == "absolute"


def _angles(shape: Transformer, policy: Policy, time: Array, position: Array) -> tuple[Array, Array] | None:
    """Cosines and sines at the positions of all places, from a table; of the current token alone, if positions stay."""
    if shape.position != "rotary":
        return None
    wide = jnp.promote_types(shape.dtype, jnp.float32)
    if stays(policy):
        return angles(shape, time[None, None], wide)
    table = angles(shape, jnp.arange(policy.size, dtype=jnp.int32), wide)
    cos, sin = (x.at[position].get(mode="promise_in_bounds") for x in table)
    return cos, sin


def _turned(key: Float[Array, "g L e"], angles: tuple[Float[Array, " rows #L half"], Float[Array, " rows #L half"]]) -> Array:
    """All keys of a layer with their positions."""
    wide = key.astype(angles[0].dtype)[:, :, None]
    return attention.turn(wide, *angles)[:, :, 0].astype(key.dtype)


def _inserted(layer: Layer, placement: Placement, key: Float[Array, "g e"], value: Float[Array, "g e"]) -> Layer:
    """The cache with the current token in its place."""
    here = jnp.arange(layer.key.shape[1], dtype=jnp.int32) == placement.place[:, None]

    def written(old: Float[Array, "g L e"], new: Float[Array, "g e"]) -> Array:
        if placement.place.shape[0] == 1:  # one place in all heads: a slice
            return jax.lax.dynamic_update_slice_in_dim(old, new[:, None].astype(old.dtype), placement.place[0], 1)
        return old.at[jnp.arange(new.shape[0]), placement.place].set(new.astype(old.dtype))

    return Layer(
        key=written(layer.key, key),
        value=written(layer.value, value),
        born=jnp.broadcast_to(placement.born, layer.born.shape),
        position=jnp.broadcast_to(placement.position, layer.position.shape),
        score=jnp.where(here, 0, layer.score),
    )
