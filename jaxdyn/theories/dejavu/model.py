r"""A ReLU decoder of which, for every token, a part alone may run: some heads, some units of the MLPs.

.. math:: x \leftarrow x + \textstyle\sum_h m_h\, O_h A_h v_h, \qquad
   x \leftarrow x + W_{out}^\top (n \circ \mathrm{relu}(z W_{in} + c)), \qquad z = N x

with learned positions, N the root-mean-square norm, and the masks m (heads) and n (units) of the largest scores of every token. The
scores are any function of what the token shows in the layer, by a traced switch; with masks of ones it is a plain decoder.
Source: arXiv:2310.17157, section 3.1 (which parts: heads by the norm of their output, units by their activation), section 4.1
(predictors of low rank); the sizes are ours.
Letters: b texts of T tokens of V, L layers, d width, h heads, f units, r rank of a predictor.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.nn import attention
from jaxdyn.nn.transformer import rms_norm

EPSILON = 1e-6
SOURCES = ("same", "previous")  # whose stream a predictor sees: the MLP's own input, or the input of the MLP before
MODES = ("own", "other", "mean", "frequency", "random", *SOURCES, "shuffled")


class Layer(NamedTuple):
    """Weights of all layers, stacked."""

    qkv: Float[Array, "*L three d d"]
    out: Float[Array, "*L d d"]
    inner: Float[Array, "*L d f"]
    shift: Float[Array, "*L f"]
    outer: Float[Array, "*L f d"]
    gains: Float[Array, "*L two d"]


class Params(NamedTuple):
    """All weights."""

    embed: Float[Array, "V d"]
    position: Float[Array, "T d"]
    layers: Layer
    gain: Float[Array, " d"]
    head: Float[Array, "V d"]


class Signs(NamedTuple):
    """What scores may rest on besides the token's own layer: averages over a text, noise, predictors (by source)."""

    mean: Float[Array, "*L f"]
    frequency: Float[Array, "*L f"]
    head_mean: Float[Array, "*L h"]
    low: Float[Array, "*L source d r"]
    high: Float[Array, "*L source r f"]
    bias: Float[Array, "*L source f"]


class Part(NamedTuple):
    """Which part runs: places in :data:`MODES` and how many heads and units of every token."""

    mode: Int[Array, "*p"]
    units: Int[Array, "*p"]
    heads: Int[Array, "*p"]


class Activity(NamedTuple):
    """What every token shows in every layer: streams before both halves, their changes, units, norms of heads' outputs, z."""

    streams: Float[Array, "L two T d"]
    changes: Float[Array, "L two T d"]
    units: Float[Array, "L T f"]
    norms: Float[Array, "L T h"]
    inputs: Float[Array, "L T d"]
    before: Float[Array, "L T d"]


def init(key: PRNGKeyArray, vocabulary: int, length: int, layers: int, width: int, hidden: int, dtype: str = "float32") -> Params:
    """Gaussian weights of variance 1 over the number of inputs; what writes into the stream is divided by the root of 2 L."""
    keys = jax.random.split(key, 7)

    def normal(i: int, scale: float, *size: int) -> Array:
        return jax.random.normal(keys[i], size, dtype) * jnp.asarray(scale, dtype)

    write = (2 * layers) ** -0.5
    return Params(
        embed=normal(0, 1.0, vocabulary, width),
        position=normal(1, 0.3, length, width),
        layers=Layer(
            qkv=normal(2, width**-0.5, layers, 3, width, width),
            out=normal(3, write * width**-0.5, layers, width, width),
            inner=normal(4, width**-0.5, layers, width, hidden),
            shift=jnp.zeros((layers, hidden), dtype),
            outer=normal(5, write * hidden**-0.5, layers, hidden, width),
            gains=jnp.ones((layers, 2, width), dtype),
        ),
        gain=jnp.ones((width,), dtype),
        head=normal(6, width**-0.5, vocabulary, width),
    )


def top(scores: Float[Array, "*b n"], count: int | Int[Array, ""]) -> Bool[Array, "*b n"]:
    """Where the largest scores are, of equal ones the first. The count may be traced; if it is all of them, none are compared."""
    return jax.lax.cond(count < scores.shape[-1], lambda: places(scores) < count, lambda: jnp.ones(scores.shape, bool))


def places(scores: Float[Array, "*b n"]) -> Int[Array, "*b n"]:
    """How many scores are larger, or as large and earlier; by comparing all pairs, which is faster than sorting short rows."""
    one, other = scores[..., :, None], scores[..., None, :]
    earlier = jnp.tri(scores.shape[-1], k=-1, dtype=bool)
    return jnp.sum((other > one) | ((other == one) & earlier), -1, dtype=jnp.int32)


def foreseen(signs: Signs, source: int, x: Float[Array, "T d"]) -> Float[Array, "T f"]:
    """Logits of a layer's predictor that a unit is among the largest."""
    return x @ signs.low[source] @ signs.high[source] + signs.bias[source]


def _units(part: Part, signs: Signs, noise: Array, driven: Array, z: Array, before: Array) -> Float[Array, "T f"]:
    """Scores of all units, by the mode; what drives a unit also ranks those that are off, which activations do not."""
    half = driven.shape[0] // 2
    same, previous = foreseen(signs, 0, z), foreseen(signs, 1, before)
    still = [jnp.broadcast_to(x, driven.shape) for x in (signs.mean, signs.frequency)]
    return jax.lax.select_n(part.mode, driven, jnp.roll(driven, half, 0), *still, noise, same, previous, jnp.roll(same, half, 0))


def _heads(part: Part, signs: Signs, noise: Array, norms: Float[Array, "T h"]) -> Float[Array, "T h"]:
    """Scores of all heads; the modes of units that heads do not have stand for the heads' own norms."""
    other = jnp.roll(norms, norms.shape[0] // 2, 0)
    still, luck = jnp.broadcast_to(signs.head_mean, norms.shape), noise[:, : norms.shape[1]]
    return jax.lax.select_n(jnp.minimum(part.mode, 5), norms, other, still, still, luck, norms)


def forward(
    params: Params,
    tokens: Int[Array, " T"],
    heads: int,
    chosen: tuple[Part, Signs, PRNGKeyArray] | None = None,
) -> tuple[Float[Array, "T V"], Activity]:
    """Logits after each token of one text, and what the layers show; ``chosen`` runs a part of the network."""
    x = params.embed[tokens] + params.position[: tokens.size]
    layers, hidden = params.layers.shift.shape
    mask = attention.causal_mask(tokens.size)
    noise = None if chosen is None else jax.random.uniform(chosen[2], (layers, tokens.size, hidden), x.dtype)

    def one(state: tuple[Array, Array], layer: tuple) -> tuple[tuple[Array, Array], Activity]:
        x, before = state
        w, signs, luck = layer
        # heads
        q, k, v = jnp.einsum("td,cde->cte", rms_norm(x, w.gains[0], EPSILON), w.qkv).reshape(3, tokens.size, heads, -1)
        mixed = attention.attend(q, k, v, mask=mask)[0]
        written = jnp.einsum("the,hed->thd", mixed, w.out.reshape(heads, -1, x.shape[-1]))
        norms = jnp.linalg.norm(jax.lax.stop_gradient(written), axis=-1)
        if chosen is not None:
            written = jnp.where(top(_heads(chosen[0], signs, luck, norms), chosen[0].heads)[..., None], written, 0)
        change = jnp.sum(written, 1)
        middle = x + change
        # units of the MLP
        z = rms_norm(middle, w.gains[1], EPSILON)
        driven = z @ w.inner + w.shift
        units = used = jax.nn.relu(driven)
        if chosen is not None:
            used = jnp.where(top(_units(chosen[0], signs, luck, driven, z, before), chosen[0].units), units, 0)
        second = used @ w.outer
        seen = Activity(jnp.stack([x, middle]), jnp.stack([change, second]), units, norms, z, before)
        return (middle + second, z), seen

    (x, _), seen = jax.lax.scan(
        one, (x, rms_norm(x, params.layers.gains[0, 0], EPSILON)), (params.layers, None if chosen is None else chosen[1], noise)
    )
    return rms_norm(x, params.gain, EPSILON) @ params.head.T, seen
