r"""One transformer for all experiments, as pure functions of its weights: a pytree of arrays with a leading axis of layers.

.. math:: x \leftarrow s x + r A(N x), \quad x \leftarrow s x + r F(N x) \ \text{(pre)}; \qquad
   x \leftarrow N(s x + r A(x)), \quad x \leftarrow N(s x + r F(x)) \ \text{(post)}

A: attention over the heads (:mod:`jaxdyn.nn.attention`), F: the MLP, N: a norm, s and r: ``skip`` and ``residual``, 1 by default.
A parallel block is :math:`x \leftarrow s x + r(A(Nx) + F(N'x))`. The MLP is :math:`\phi(z W_u) W_d` or, gated,
:math:`(\phi(z W_g) \circ z W_u) W_d`. Every variant is a field of :class:`jaxdyn.nn.Transformer`, which has their sources.

Source: arXiv:1706.03762 (post); arXiv:2302.13971 (LLaMA), section 2.2 (the defaults).
Letters: b sequences of n tokens, L layers, h heads of e numbers, k heads of keys and values, d width, f units of the MLP, V tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, PRNGKeyArray, PyTree

from jaxdyn import metrics
from jaxdyn.errors import UsageError, is_traced, shown
from jaxdyn.linalg import dense, matrix_vector, vector_matrix
from jaxdyn.nn import attention, choices
from jaxdyn.nn.config import BIASES, DROPS, Transformer
from jaxdyn.nn.norms import layer_norm, rms_norm
from jaxdyn.nn.pointwise import activated
from jaxdyn.nn.start import init
from jaxdyn.nn.tokens import checked
from jaxdyn.sampling import wide

__all__ = [
    "OBSERVABLES",
    "Network",
    "added",
    "angles",
    "apply",
    "attended",
    "blocks_of",
    "count",
    "embedded",
    "ending",
    "entering",
    "entropy_of",
    "expanded",
    "heads",
    "init",
    "joined",
    "last",
    "merged",
    "near",
    "network",
    "no_trunk",
    "normed",
    "parts",
    "placed",
    "product",
    "read",
    "read_out",
    "rms_norm",
    "slopes_of",
    "trunk",
    "turned",
    "units",
    "with_sink",
    "without_sink",
    "written",
]

OBSERVABLES = {
    "attention": "attention weights, [depth, b, h, n, n]",
    "entropy": "entropy in nats of every query's attention (of its shares; NaN of linear attention), [depth, b, h, n]",
    "inputs": "residual stream before each block and after the last (and its norm, if there is one), [depth + 1, b, n, d]",
    "hidden": "units of the MLPs after their activation, [depth, b, n, f]",
}
Drop = Callable[..., Array]


def no_trunk(params: PyTree, tokens: Any, **_: Any) -> Any:
    """The trunk of a network that has none.

    Raises:
        UsageError: always.
    """
    raise UsageError("this network has no trunk: it is made of a module that gives logits, and nothing before them")


class Network(NamedTuple):
    """A transformer as pure functions of its weights, or a module of flax's (:mod:`jaxdyn.nn.adapters`), which has no trunk.

    ``init(key) -> params``. ``apply(params, tokens, *, key=None, observe=())``: logits [b, n, V] of integer tokens [b, n]; with a
    key dropout is on; with names from :data:`OBSERVABLES` in ``observe``, a pair of the logits and a dict of what was asked for.
    ``trunk`` is ``apply`` without the read-out: it returns the last residual stream [b, n, d] instead of logits, for losses that
    never hold all logits. Known tokens outside the vocabulary are refused, of traced ones other dtypes
    and shapes (:mod:`jaxdyn.nn.tokens`).
    """

    shape: Any
    init: Callable[..., PyTree]
    apply: Callable[..., Any]
    trunk: Callable[..., Any] = no_trunk

    @property
    def has_trunk(self) -> bool:
        """Whether the logits are a read-out of a trunk."""
        return self.trunk is not no_trunk


def network(shape: Transformer) -> Network:
    """The network of a shape."""
    return Network(shape, *(functools.partial(function, shape) for function in (init, apply, trunk)))


def count(params: PyTree) -> int:
    """Number of weights."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def read_out(params: PyTree) -> tuple[Float[Array, "V d"], Float[Array, " V"]]:
    """Matrix and shift that turn the last residual stream into logits, ``x @ matrix.T + shift``."""
    head = params["head"] if "head" in params else params["embed"]
    return head, params["head_bias"] if "head_bias" in params else jnp.zeros(head.shape[0], head.dtype)


def apply(
    shape: Transformer,
    params: PyTree,
    tokens: Integer[Array, "b n"],
    *,
    key: PRNGKeyArray | None = None,
    observe: Sequence[str] = (),
) -> Any:
    """Logits [b, n, V]; with names of :data:`OBSERVABLES`, a pair of the logits and a dict of what was asked for."""
    out = trunk(shape, params, tokens, key=key, observe=observe)
    x, seen = out if observe else (out, {})
    return (read(shape, params, x), seen) if observe else read(shape, params, x)


def read(shape: Transformer, params: PyTree, x: Float[Array, "*rest d"]) -> Float[Array, "*rest V"]:
    """Logits of the last residual stream."""
    rows = params["embed" if shape.tied else "head"]
    out = matrix_vector(jnp.asarray(rows), x) if x.ndim == 1 else dense(x, rows.T)
    return out + params["head_bias"] if "head" in shape.biases else out


def embedded(
    shape: Transformer, params: PyTree, tokens: Integer[Array, "*rest n"], positions: Int[Array, " n"]
) -> Float[Array, "*rest n d"]:
    """The residual stream before the first block; token number ``vocabulary`` is the sink token.

    Traced tokens and positions are read as any index of JAX's (:mod:`jaxdyn.nn.tokens`).

    Raises:
        UsageError: for a known token or position outside, and for weights of another vocabulary or length.
    """
    _sized("embed", params["embed"], shape.vocabulary, "vocabulary")
    tokens = checked(tokens, shape.vocabulary + shape.sink_token)
    x = jnp.asarray(params["embed"])[jnp.where(tokens == shape.vocabulary, 0, tokens) if shape.sink_token else tokens]
    if shape.sink_token:
        x = jnp.where((tokens == shape.vocabulary)[..., None], params["sink_token"], x)
    x = _times(shape.scale, x)
    return x + placed(shape, params, positions) if shape.added else x


def placed(shape: Transformer, params: PyTree, positions: Int[Array, "*b n"]) -> Float[Array, "*b n d"]:
    r"""Positions that are added to embeddings: learned ones, or :math:`\sin(i\,10^{-4 \cdot 2j/d})` and cosines, alternating.

    Source: arXiv:1706.03762, section 3.5.

    Raises:
        UsageError: for a known position beyond learned ones.
    """
    if shape.position == "sinusoidal":
        rate = 10_000.0 ** (-jnp.arange(0, shape.width, 2, dtype=wide(shape.dtype)) / shape.width)
        angle = positions[..., None].astype(rate.dtype) * rate
        both = jnp.stack([jnp.sin(angle), jnp.cos(angle)], -1)
        return both.reshape(*positions.shape, -1)[..., : shape.width].astype(shape.dtype)
    _sized("position", params["position"], shape.length, "length")
    return jnp.asarray(params["position"])[checked(positions, shape.length, name="positions", of="length")]


def blocks_of(shape: Transformer, params: PyTree) -> dict[str, Array]:
    """The weights of the blocks.

    Raises:
        UsageError: for weights of another network: with other names than this one has, or in other shapes. Entries of one's own
            next to them are left alone.
    """
    if not isinstance(params, Mapping) or not isinstance(params.get("blocks"), Mapping):
        raise UsageError(f"params={shown(params)} is not allowed: it is what init gives, a dict with the weights of the blocks")
    wanted, known = _names(dataclasses.replace(shape.known, attention="sink_bias" if shape.has_sink else "softmax"))
    given = {name: jnp.shape(w) for name, w in params.items() if name != "blocks"}
    given |= {f"blocks/{name}": jnp.shape(w) for name, w in params["blocks"].items()}
    for path in sorted(wanted.keys() | (given.keys() & known)):
        if given.get(path) != wanted.get(path):
            has, needs = (f"shape {sizes[path]}" if path in sizes else "none" for sizes in (given, wanted))
            raise UsageError(f"these weights are of another network: of {path} they have {has}, this one has {needs}")
    return params["blocks"]


@functools.cache
def _names(shape: Transformer) -> tuple[dict[str, tuple[int, ...]], frozenset[str]]:
    """The shapes of a network's weights by their paths, and the paths of all kinds of networks."""
    every: dict[str, Any] = {"norm": "layer", "norm_place": "pre", "mlp": "gated", "hidden": 1, "biases": BIASES, "tied": False}
    every |= dict.fromkeys(("output_gate", "query_key_norm", "sink_token", "project"), True)
    every |= {"attention": "sink_bias", "position": "learned", "length": 1, "rotary": None, "scaling": None, "outputs": None}
    return _paths(shape), frozenset(_paths(dataclasses.replace(shape, **every)))


def _paths(shape: Transformer) -> dict[str, tuple[int, ...]]:
    like = jax.eval_shape(lambda: init(shape, jax.random.key(0)))
    blocks = {f"blocks/{name}": w.shape for name, w in like["blocks"].items()}
    return blocks | {name: w.shape for name, w in like.items() if name != "blocks"}


def _sized(name: str, w: Array, count: int, of: str) -> None:
    if w.shape[0] != count:
        raise UsageError(f"these weights are of another network: {name} has {w.shape[0]} rows, {of}={count}")


def with_sink(shape: Transformer, tokens: Integer[Array, "*b n"]) -> Int[Array, "*b m"]:
    """The tokens after the sink token, if the network has one; m is then n + 1, else n."""
    if not shape.sink_token:
        return tokens
    return jnp.concatenate([jnp.full((*tokens.shape[:-1], 1), shape.vocabulary, tokens.dtype), tokens], -1)


def without_sink(shape: Transformer, x: Float[Array, "*b m d"]) -> Float[Array, "*b n d"]:
    """What a network gives after every token but the sink token."""
    return x[..., 1:, :] if shape.sink_token else x


def trunk(
    shape: Transformer,
    params: PyTree,
    tokens: Integer[Array, "b n"],
    *,
    key: PRNGKeyArray | None = None,
    observe: Sequence[str] = (),
) -> Any:
    """The last residual stream after its norm, [b, n, d], instead of logits.

    What is observed has the sink token, too: as its first token, one more than n. Of traced tokens only dtype and shape are checked
    (:mod:`jaxdyn.nn.tokens`).

    Raises:
        UsageError: for a name that is none of :data:`OBSERVABLES`, for tokens that are no array of token numbers, and for weights
            of another network.
    """
    if unknown := set(observe) - set(OBSERVABLES):
        raise UsageError(f"cannot observe {', '.join(sorted(unknown))}: it is among {', '.join(OBSERVABLES)}")
    if not is_traced(shape.dropout) and shape.dropout == 0:
        key = None
    blocks, x = blocks_of(shape, params), _entered(shape, params, tokens)
    x = _dropping(shape, key, shape.depth)(x, "embedding")

    def step(x: Array, part: tuple[dict[str, Array], Array | int | None]) -> tuple[Array, dict[str, Array]]:
        w, number = part
        return _block(shape, tuple(observe), x, w, _dropping(shape, key, number))

    numbers = None if key is None else jnp.arange(shape.depth, dtype=jnp.int32)
    if shape.scan:
        x, seen = jax.lax.scan(step, x, (expanded(shape, blocks), numbers))
    else:
        each = []
        for number, layer in enumerate(shape.walk):
            x, one = step(x, (jax.tree.map(lambda w, i=layer: w[i], blocks), number))
            each.append(one)
        seen = jax.tree.map(lambda *a: jnp.stack(a), *each)
    x = last(shape, params, x)
    if "inputs" in observe:
        seen = seen | {"inputs": jnp.concatenate([seen["inputs"], x[None]])}
    x = without_sink(shape, x)
    return (x, seen) if observe else x


def _dropping(shape: Transformer, key: PRNGKeyArray | None, number: int | Array | None) -> Drop:
    """Dropout of one block: ``drop(x, place, part)``, with other draws for every place and part; without a key everything stays."""
    if key is None or number is None:
        return _keep_all
    own = jax.random.fold_in(key, number)

    def drop(x: Array, place: str, part: int = 0) -> Array:
        if place not in shape.drops:
            return x
        stays = jnp.asarray(1 - shape.dropout, wide(x.dtype))
        draw = jax.random.bernoulli(jax.random.fold_in(own, 2 * DROPS.index(place) + part), stays, x.shape)
        return jnp.where(draw, x / stays.astype(x.dtype), 0)

    return drop


def _keep_all(x: Array, place: str, part: int = 0) -> Array:
    return x


def _entered(shape: Transformer, params: PyTree, tokens: Integer[Array, "b n"]) -> Float[Array, "b m d"]:
    """The residual stream of whole sequences before the first block, with the sink token."""
    tokens = with_sink(shape, checked(tokens, shape.vocabulary, least=1))
    n = tokens.shape[-1]
    if shape.position == "learned" and n > shape.length:
        raise UsageError(f"this network has learned {shape.length} positions (length), got {n} tokens")
    return embedded(shape, params, tokens, jnp.arange(n, dtype=jnp.int32))


def expanded(shape: Transformer, blocks: dict[str, Array]) -> dict[str, Array]:
    """The weights of every depth: those of the blocks, again where they are used again."""
    return blocks if shape.repeats == 1 else jax.tree.map(lambda w: w[jnp.asarray(shape.walk)], blocks)


def parts(shape: Transformer) -> tuple[Callable[..., Array], Callable[..., Array], Callable[..., Array]]:
    """The network in parts, for training that sees one layer at a time.

    ``enter(rest, tokens) -> x``, ``block(w, x) -> x`` with the weights of one layer, and ``read(rest, x) -> logits``; ``rest`` are
    the parameters without the blocks. The layers follow one another as ``shape.walk`` says, a repeated one several times.
    """

    def reading(rest: PyTree, x: Float[Array, "b m d"]) -> Float[Array, "b n V"]:
        return read(shape, rest, without_sink(shape, last(shape, rest, x)))

    return functools.partial(_entered, shape), (lambda w, x: _block(shape, (), x, w)[0]), reading


def last(shape: Transformer, params: PyTree, x: Float[Array, "*rest d"]) -> Float[Array, "*rest d"]:
    """The last residual stream after its norm."""
    return normed(shape, params, "norm", x)


def normed(s: Transformer, w: PyTree, name: str, x: Float[Array, "*rest d"]) -> Float[Array, "*rest d"]:
    """The residual stream after the norm of this name, by the network's kind of norm; as it is where there is no such norm."""
    if name not in w:
        return x
    if s.norm == "rms":
        return rms_norm(x, w[name], s.epsilon)
    return layer_norm(x, w[name], w[f"{name}_bias"], s.epsilon)


def entering(s: Transformer, w: dict[str, Array], name: str, x: Float[Array, "*rest d"]) -> Float[Array, "*rest d"]:
    """What attention or the MLP reads of the stream: after the norm of this name, if norms come first."""
    return normed(s, w, name, x) if s.norm_place == "pre" else x


def joined(
    s: Transformer, w: dict[str, Array], name: str, x: Float[Array, "*rest d"], change: Float[Array, "*rest d"]
) -> Float[Array, "*rest d"]:
    """The stream after a change was added to it, and after the norm of this name, if norms come last."""
    out = _times(s.skip, x) + _times(s.residual, change)
    return normed(s, w, name, out) if s.norm_place == "post" else out


def _times(factor: Any, x: Float[Array, "*rest d"]) -> Float[Array, "*rest d"]:
    """The product with a number that may be traced, in the dtype of x."""
    return x if not is_traced(factor) and factor == 1 else x * jnp.asarray(factor, x.dtype)


def _block(
    shape: Transformer, observe: tuple[str, ...], x: Float[Array, "b n d"], w: dict[str, Array], drop: Drop = _keep_all
) -> tuple[Array, dict[str, Array]]:
    """Attention and MLP, each with its residual, and what is observed in them."""
    q, k, v = heads(shape, x, w)
    out, b = attended(shape, q, k, v, w.get("sink"), drop)
    end = ending(shape, x, out, w, drop)
    seen = {"attention": b, "inputs": x, "hidden": end.units}
    found = {name: seen[name] for name in observe if name in seen}
    return end.after, found | ({"entropy": entropy_of(shape, b)} if "entropy" in observe else {})


def entropy_of(s: Transformer, b: Float[Array, "*rest m"]) -> Float[Array, "*rest"]:
    """The entropy of weights, or of their shares where they do not sum to 1; NaN where they may be negative, and have none."""
    kinds = set(choices.names(s.attention))
    if kinds <= {"softmax", "zero_sink", "sink_bias"}:
        return metrics.entropy(b)
    if not kinds <= set(attention.KINDS) - {"linear"}:
        return jnp.full(b.shape[:-1], jnp.nan, b.dtype)
    total = jnp.sum(b, -1, keepdims=True)
    return metrics.entropy(b / jnp.where(total > 0, total, 1))


def heads(s: Transformer, x: Float[Array, "*rest d"], w: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Queries [*rest, h, e], keys and values [*rest, k, e] of a block, without positions."""
    z = entering(s, w, "attention_norm", x)
    counts = {"q": s.heads, "k": s.key_heads, "v": s.key_heads}
    q, k, v = (jnp.reshape(product(s, w, name, z), (*z.shape[:-1], count, s.entries)) for name, count in counts.items())
    if s.query_key_norm:
        q, k = rms_norm(q, w["q_norm"], s.epsilon), rms_norm(k, w["k_norm"], s.epsilon)
    return q, k, v


def product(s: Transformer, w: dict[str, Array], name: str, z: Float[Array, "*rest m"]) -> Float[Array, "*rest n"]:
    """The product with a block's matrix, and its bias if it has one."""
    out = (vector_matrix if z.ndim == 1 else dense)(z, w[name])
    return out + w[f"{name}_bias"] if name in s.biases else out


def merged(
    s: Transformer, x: Float[Array, "*rest d"], out: Float[Array, "*rest h e"], w: dict[str, Array]
) -> Float[Array, "*rest d"]:
    """The block's end: what the heads give goes into the residual stream, then the MLP's output."""
    return ending(s, x, out, w).after


class Ending(NamedTuple):
    """What a block does after its heads; without an MLP there are no units, and nothing is added."""

    written: Float[Array, "*rest d"]  # what attention adds to the stream
    units: Float[Array, "*rest f"]
    added: Float[Array, "*rest d"]  # what the MLP adds to the stream
    after: Float[Array, "*rest d"]  # residual stream


def ending(
    s: Transformer, x: Float[Array, "*rest d"], out: Float[Array, "*rest h e"], w: dict[str, Array], drop: Drop = _keep_all
) -> Ending:
    """The block's end from the stream before it and what the heads give."""
    change = drop(written(s, x, out, w), "residual", 0)
    after = joined(s, w, "attention_norm", x, change)
    adds = _times(s.residual, change)
    if s.mlp == "none":
        return Ending(adds, jnp.zeros((*x.shape[:-1], 0), x.dtype), jnp.zeros_like(x), after)
    hidden = units(s, x if s.parallel else after, w)
    more = drop(added(s, drop(hidden, "mlp"), w), "residual", 1)
    end = after + _times(s.residual, more) if s.parallel else joined(s, w, "mlp_norm", after, more)
    return Ending(adds, hidden, _times(s.residual, more), end)


def written(
    s: Transformer, x: Float[Array, "*rest d"], out: Float[Array, "*rest h e"], w: dict[str, Array]
) -> Float[Array, "*rest d"]:
    """What attention adds to the residual stream x that it has read."""
    side = out.reshape(*out.shape[:-2], -1)
    if s.output_gate:
        side = side * jax.nn.sigmoid(product(s, w, "output_gate", entering(s, w, "attention_norm", x)))
    return product(s, w, "o", side) if s.project else side


def units(s: Transformer, x: Float[Array, "*rest d"], w: dict[str, Array]) -> Float[Array, "*rest f"]:
    """The MLP's units, by which its last matrix is multiplied, from the residual stream that it reads."""
    z = entering(s, w, "mlp_norm", x)
    if s.mlp == "gated":
        return activated(product(s, w, "gate", z), s.activation) * product(s, w, "up", z)
    return activated(product(s, w, "up", z), s.activation)


def added(s: Transformer, hidden: Float[Array, "*rest f"], w: dict[str, Array]) -> Float[Array, "*rest d"]:
    """What the MLP adds to the residual stream."""
    return product(s, w, "down", hidden)


def turned(s: Transformer, x: Float[Array, "*b n h e"], positions: Int[Array, "*#b n"] | None = None) -> Float[Array, "*b n h e"]:
    """Queries or keys with their positions, if these are rotary."""
    if s.position != "rotary":
        return x
    exact = wide(x.dtype)  # in bfloat16 positions beyond 256 have no angle of their own
    at = jnp.arange(x.shape[-3], dtype=jnp.int32) if positions is None else positions
    return attention.turn(x.astype(exact), *angles(s, at, exact)).astype(x.dtype)


def angles(
    s: Transformer, positions: Int[Array, "*b n"], dtype: Any
) -> tuple[Float[Array, "*b n half"], Float[Array, "*b n half"]]:
    """Cosines and sines of rotary positions."""
    return attention.angles(positions, s.rotated, s.base, dtype, s.scaling)


def near(s: Transformer, seen: Bool[Array, "*#b #n m"], distance: Int[Array, "*#b #n m"]) -> Bool[Array, "*b n m"]:
    """Which keys a query sees, of those that it may see, at these distances from it: in its window, with itself or without."""
    seen = seen if s.sees_itself else seen & (distance != 0)
    return seen if s.window is None else seen & (distance < s.window)


def mask_of(s: Transformer, n: int) -> Bool[Array, "n n"]:
    """Which keys (columns) a query (row) sees in a whole text."""
    at = jnp.arange(n, dtype=jnp.int32)
    return near(s, attention.causal_mask(n) if s.causal else jnp.ones((n, n), bool), at[:, None] - at)


def attended(
    s: Transformer, q: Array, k: Array, v: Array, sink: Array | None, drop: Drop = _keep_all
) -> tuple[Array, Float[Array, "b h n n"]]:
    """Output [b, n, h, e] and weights of the heads."""
    at = jnp.arange(q.shape[-3], dtype=jnp.int32)
    bias = slopes_of(s, at) if s.position == "alibi" else None
    k, v = (jnp.repeat(part, s.heads // s.key_heads, axis=-2) for part in (turned(s, k), v))
    dropped = functools.partial(drop, place="attention")
    given = {"kind": s.attention, "mask": mask_of(s, at.size), "bias": bias, "sink": sink, "drop": dropped}
    return attention.attend(turned(s, q), k, v, **given)


def slopes_of(s: Transformer, at: Int[Array, " n"]) -> Float[Array, "h n n"]:
    """ALiBi's term of the scores; keys after a query are as far from it as those before."""
    bias = attention.alibi(at, at, s.heads, s.dtype)
    return bias if s.causal else -jnp.abs(bias)
