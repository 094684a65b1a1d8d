r"""The decoder of published language models as two pure functions of its weights: plain arrays with a leading axis of layers.

.. math:: x \leftarrow x + A(N x), \qquad x \leftarrow x + \bigl(\mathrm{silu}(z W_g) \circ z W_u\bigr) W_d,\ z = N x, \qquad
   N x = g \circ x / \sqrt{\overline{x^2} + \epsilon}

A: softmax attention with rotary positions, causal, without biases; keys and values may have fewer heads than queries, which share
them. Other kinds of attention and of positions are fields, and so is a sink token: a trained embedding before every sequence, which
passes through all layers and gives no logits. Further fields describe Mistral, Qwen2, GPT-NeoX, GPT-2 and OPT:
LayerNorm, an MLP without gate, biases, a window of attention, positions in a part of a head's entries, and the parallel block

.. math:: x \leftarrow x + A(N x) + \phi(N' x\, W_u) W_d
Source: arXiv:2302.13971 (LLaMA), section 2.2; arXiv:2305.13245 (grouped queries); arXiv:2309.17453, section 3.3 (the sink token);
arXiv:2402.14905, section 2.3 (blocks that are used again); sizes and start: arXiv:2403.03507, table 5 and its code;
arXiv:2310.06825 (window), arXiv:2204.06745, section 2.1 (parallel block, share of rotary entries).
Letters: b sequences of n tokens, L layers, h heads of e numbers, k heads of keys and values, d width, f units of the MLP, V tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import metrics
from jaxdyn.errors import UsageError, require
from jaxdyn.linalg import dense, matrix_vector, vector_matrix
from jaxdyn.nn import attention
from jaxdyn.nn.config import validate
from jaxdyn.nn.norms import layer_norm, rms_norm
from jaxdyn.nn.rotary import Scaling
from jaxdyn.nn.tokens import checked
from jaxdyn.nn.transformer import Network

__all__ = [
    "ACTIVATIONS",
    "BIASES",
    "LLAMA",
    "OBSERVED",
    "Decoder",
    "angles",
    "apply",
    "attended",
    "blocks_of",
    "decoder",
    "expanded",
    "init",
    "last",
    "llama",
    "near",
    "normed",
    "parts",
    "placed",
    "product",
    "rms_norm",
    "trunk",
    "units",
    "written",
]

OBSERVED = {
    "attention": "attention weights, [depth, b, h, n, n]",
    "entropy": "entropy in nats of every query's attention, [depth, b, h, n]",
    "inputs": "residual stream before each block, [depth, b, n, d]",
}
POSITIONS = ("rotary", "alibi", "learned", "none")
ORDERS = ("immediate", "all")
NORMS, MLPS = ("rms", "layer"), ("gated", "plain")
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": jax.nn.silu,
    "relu": jax.nn.relu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
}
BIASES = ("q", "k", "v", "o", "gate", "up", "down")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoder:
    """The decoder without its weights; hashable.

    ``scan`` runs the layers as a loop, so that compiling takes equally long for any depth; without it they are written out, which
    may run faster. The weights are the same.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    hidden: int  # units of the MLP
    groups: int | None = None  # heads of keys and values; None: one for each head
    tied: bool = False  # the read-out is the embedding
    repeats: int = 1  # how often each block's weights are used
    order: str = "immediate"  # of repeated blocks: 1, 1, 2, 2, ... ("immediate") or 1, 2, ..., 1, 2, ... ("all")
    attention: str = "softmax"  # one of attention.KINDS
    position: str = "rotary"  # one of POSITIONS
    length: int = 0  # largest number of positions, for learned ones; the sink token takes one of them
    sink_token: bool = False  # it is token number ``vocabulary``, at position 0
    head_size: int | None = None  # numbers in a head; None: the width shared out among the heads
    window: int | None = None  # positions that a query sees, its own included; None: all before it
    norm: str = "rms"  # or "layer", with biases
    mlp: str = "gated"  # or "plain", without a gate
    activation: str = "silu"  # one of ACTIVATIONS
    biases: tuple[str, ...] = ()  # matrices with a bias, among BIASES
    parallel: bool = False  # attention and MLP both read the block's input
    epsilon: float = 1e-6
    base: float = 10_000.0  # of the rotary positions
    rotary: int | None = None  # entries of a head that are turned, the first ones; None: all
    scaling: Scaling | None = None  # of the rotary rates
    std: float = 0.02  # of all weights at the start
    scan: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        names = ("vocabulary", "width", "layers", "heads", "hidden", "groups", "repeats", "head_size", "window")
        sizes = dict.fromkeys(names, 1) | {"length": 0, "rotary": 2}
        numbers = {"epsilon": {"least": 0}, "base": {"above": 0}, "std": {"least": 0}}
        validate(self, sizes, numbers, ("tied", "sink_token", "scan", "parallel"))
        divides = self.head_size is not None or self.width % self.heads == 0
        require(self, divides, "width is a multiple of heads", "width", "heads")
        choices = {"order": ORDERS, "attention": attention.KINDS, "position": POSITIONS}
        for name, allowed in (choices | {"norm": NORMS, "mlp": MLPS, "activation": tuple(ACTIVATIONS)}).items():
            require(self, getattr(self, name) in allowed, f"{name} is one of {', '.join(allowed)}", name)
        self._settle_biases()
        self._settle_rotary()
        learned = self.position != "learned" or self.length >= 1
        require(self, learned, "learned positions need length, the largest number of positions", "length")
        require(self, self.heads % self.key_heads == 0, "heads is a multiple of groups", "heads", "groups")

    def _settle_biases(self) -> None:
        """Refuse biases of matrices that are not there; their order is that of :data:`BIASES`."""
        own = tuple(name for name in BIASES if name != "gate" or self.mlp == "gated")
        known = isinstance(self.biases, tuple | list) and all(name in own for name in self.biases)
        require(self, known, f"with mlp={self.mlp} biases are among {', '.join(own)}", "biases")
        object.__setattr__(self, "biases", tuple(name for name in BIASES if name in self.biases))

    def _settle_rotary(self) -> None:
        """Refuse fields of rotary positions that do not fit the heads, or that nothing would read."""
        turns = self.position == "rotary"
        even = "rotary positions need an even number of entries per head"
        require(self, not turns or self.rotated % 2 == 0, even, *(("width", "heads") if self.rotary is None else ("rotary",)))
        if self.rotary is not None:
            require(self, turns, "a number of rotary entries needs rotary positions", "rotary", "position")
            require(self, self.rotary <= self.entries, f"a head has {self.entries} entries", "rotary")
        scaled = self.scaling is None or isinstance(self.scaling, Scaling)
        require(self, scaled, "scaling is a jaxdyn.nn.rotary.Scaling or None", "scaling")
        require(self, turns or self.scaling is None, "scaling needs rotary positions", "scaling", "position")
        table = () if self.scaling is None else self.scaling.table
        require(self, 2 * len(table) in (0, self.rotated), f"its table has {self.rotated // 2} divisors", "scaling")

    @property
    def entries(self) -> int:
        """Numbers in a head."""
        return self.width // self.heads if self.head_size is None else self.head_size

    @property
    def rotated(self) -> int:
        """Numbers in a head that rotary positions turn."""
        return self.entries if self.rotary is None else self.rotary

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.groups is None else self.groups

    @property
    def depth(self) -> int:
        """Blocks that a token passes, each with keys and values of its own."""
        return self.layers * self.repeats

    @property
    def walk(self) -> tuple[int, ...]:
        """Which block's weights are used at each depth."""
        return tuple(i // self.repeats if self.order == "immediate" else i % self.layers for i in range(self.depth))

    @property
    def weights(self) -> dict[str, tuple[int, ...]]:
        """Shapes of a block's matrices, (input, output), by name."""
        d, f, wide, narrow = self.width, self.hidden, self.heads * self.entries, self.key_heads * self.entries
        gate = {"gate": (d, f)} if self.mlp == "gated" else {}
        return {"q": (d, wide), "k": (d, narrow), "v": (d, narrow), "o": (wide, d), **gate, "up": (d, f), "down": (f, d)}


LLAMA = {  # width, units, heads, layers; the talks print heads and layers of 1B exchanged
    "9M": (128, 352, 4, 4),
    "20M": (256, 688, 4, 4),
    "60M": (512, 1376, 8, 8),
    "130M": (768, 2048, 12, 12),
    "350M": (1024, 2736, 16, 24),
    "1B": (2048, 5461, 32, 24),
    "7B": (4096, 11008, 32, 32),
}


def llama(name: str, *, vocabulary: int = 32_000, **more: Any) -> Decoder:
    """One of the decoders of GaLore's tables.

    Raises:
        UsageError: for a name that is none of :data:`LLAMA`.
    """
    if name not in tuple(LLAMA):
        raise UsageError(f"llama={name!r} is not allowed: it is one of {', '.join(LLAMA)}")
    width, hidden, heads, layers = LLAMA[name]
    return Decoder(**{"vocabulary": vocabulary, "width": width, "hidden": hidden, "heads": heads, "layers": layers} | more)


def decoder(shape: Decoder) -> Network:
    """The decoder in the form of all networks of this package; it has no dropout."""
    return Network(shape, functools.partial(init, shape), functools.partial(apply, shape), functools.partial(trunk, shape))


def init(shape: Decoder, key: PRNGKeyArray) -> PyTree:
    """Weights N(0, std^2), gains one, biases zero; drawn in float32 at least."""
    s = shape
    wide = jnp.promote_types(s.dtype, jnp.float32)

    def normal(i: int, *size: int) -> Array:
        return (s.std * jax.random.normal(jax.random.fold_in(key, i), size, wide)).astype(s.dtype)

    blocks = {name: normal(i, s.layers, *size) for i, (name, size) in enumerate(s.weights.items())}
    blocks |= {f"{name}_bias": jnp.zeros((s.layers, s.weights[name][1]), s.dtype) for name in s.biases}
    blocks |= {name: jnp.ones((s.layers, s.width), s.dtype) for name in ("attention_norm", "mlp_norm")}
    if s.attention == "sink_bias":
        blocks["sink"] = jnp.zeros((s.layers, s.heads), s.dtype)
    params = {"embed": normal(7, s.vocabulary, s.width), "blocks": blocks, "norm": jnp.ones(s.width, s.dtype)}
    if s.norm == "layer":
        blocks |= {f"{name}_bias": jnp.zeros((s.layers, s.width), s.dtype) for name in ("attention_norm", "mlp_norm")}
        params["norm_bias"] = jnp.zeros(s.width, s.dtype)
    if s.position == "learned":
        params["position"] = normal(9, s.length, s.width)
    if s.sink_token:
        params["sink_token"] = normal(10, s.width)
    return params if s.tied else params | {"head": normal(8, s.vocabulary, s.width)}


def apply(
    shape: Decoder, params: PyTree, tokens: Int[Array, "b n"], *, key: PRNGKeyArray | None = None, observe: Sequence[str] = ()
) -> Any:
    """Logits [b, n, V]; with names of :data:`OBSERVED`, a pair of the logits and a dict of what was asked for."""
    out = trunk(shape, params, tokens, key=key, observe=observe)
    x, seen = out if observe else (out, {})
    return (read(shape, params, x), seen) if observe else read(shape, params, x)


def read(shape: Decoder, params: PyTree, x: Float[Array, "*rest d"]) -> Float[Array, "*rest V"]:
    """Logits of the last residual stream."""
    rows = params["embed" if shape.tied else "head"]
    return matrix_vector(jnp.asarray(rows), x) if x.ndim == 1 else dense(x, rows.T)


def embedded(
    shape: Decoder, params: PyTree, tokens: Int[Array, "*rest n"], positions: Int[Array, " n"]
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
    return x + placed(shape, params, positions) if shape.position == "learned" else x


def placed(shape: Decoder, params: PyTree, positions: Int[Array, "*b n"]) -> Float[Array, "*b n d"]:
    """Learned positions.

    Raises:
        UsageError: for a known position beyond them.
    """
    _sized("position", params["position"], shape.length, "length")
    return jnp.asarray(params["position"])[checked(positions, shape.length, name="positions", of="length")]


def blocks_of(shape: Decoder, params: PyTree) -> dict[str, Array]:
    """The weights of the blocks.

    Raises:
        UsageError: if they are of another number of layers, of which JAX would read the last one again and again.
    """
    for name, w in params["blocks"].items():
        _sized(name, w, shape.layers, "layers")
    return params["blocks"]


def _sized(name: str, w: Array, count: int, of: str) -> None:
    if w.shape[0] != count:
        raise UsageError(f"these weights are of another network: {name} has {w.shape[0]} rows, {of}={count}")


def with_sink(shape: Decoder, tokens: Int[Array, "*b n"]) -> Int[Array, "*b m"]:
    """The tokens after the sink token, if the network has one; m is then n + 1, else n."""
    if not shape.sink_token:
        return tokens
    return jnp.concatenate([jnp.full((*tokens.shape[:-1], 1), shape.vocabulary, tokens.dtype), tokens], -1)


def without_sink(shape: Decoder, x: Float[Array, "*b m d"]) -> Float[Array, "*b n d"]:
    """What a network gives after every token but the sink token."""
    return x[..., 1:, :] if shape.sink_token else x


def trunk(
    shape: Decoder, params: PyTree, tokens: Int[Array, "b n"], *, key: PRNGKeyArray | None = None, observe: Sequence[str] = ()
) -> Any:
    """The last residual stream after its norm, [b, n, d], instead of logits.

    What is observed has the sink token, too: as its first token, one more than n. Of traced tokens only dtype and shape are checked
    (:mod:`jaxdyn.nn.tokens`).

    Raises:
        UsageError: for a name that is none of :data:`OBSERVED`, for tokens that are no array of token numbers, and for weights of
            another network.
    """
    del key  # there is no dropout
    if unknown := set(observe) - set(OBSERVED):
        raise UsageError(f"cannot observe {', '.join(sorted(unknown))}: it is among {', '.join(OBSERVED)}")
    x = _entered(shape, params, tokens)
    step, blocks = functools.partial(_block, shape, tuple(observe)), blocks_of(shape, params)
    if shape.scan:
        x, seen = jax.lax.scan(step, x, expanded(shape, blocks))
    else:
        each = []
        for layer in shape.walk:
            x, one = step(x, jax.tree.map(lambda w, i=layer: w[i], blocks))
            each.append(one)
        seen = jax.tree.map(lambda *a: jnp.stack(a), *each)
    x = without_sink(shape, last(shape, params, x))
    return (x, seen) if observe else x


def _entered(shape: Decoder, params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, "b m d"]:
    """The residual stream of whole sequences before the first block, with the sink token."""
    tokens = with_sink(shape, checked(tokens, shape.vocabulary, least=1))
    n = tokens.shape[-1]
    if shape.position == "learned" and n > shape.length:
        raise UsageError(f"this network has learned {shape.length} positions (length), got {n} tokens")
    return embedded(shape, params, tokens, jnp.arange(n, dtype=jnp.int32))


def expanded(shape: Decoder, blocks: dict[str, Array]) -> dict[str, Array]:
    """The weights of every depth: those of the blocks, again where they are used again."""
    return blocks if shape.repeats == 1 else jax.tree.map(lambda w: w[jnp.asarray(shape.walk)], blocks)


def parts(shape: Decoder) -> tuple[Callable[..., Array], Callable[..., Array], Callable[..., Array]]:
    """The decoder in parts, for training that sees one layer at a time.

    ``enter(rest, tokens) -> x``, ``block(w, x) -> x`` with the weights of one layer, and ``read(rest, x) -> logits``; ``rest`` are
    the parameters without the blocks.
    """

    def ending(rest: PyTree, x: Float[Array, "b m d"]) -> Float[Array, "b n V"]:
        return read(shape, rest, without_sink(shape, last(shape, rest, x)))

    return functools.partial(_entered, shape), (lambda w, x: _block(shape, (), x, w)[0]), ending


def last(shape: Decoder, params: PyTree, x: Float[Array, "*rest d"]) -> Float[Array, "*rest d"]:
    """The last residual stream after its norm."""
    return normed(shape, params, "norm", x)


def normed(s: Decoder, w: dict[str, Array], name: str, x: Float[Array, "*rest d"]) -> Float[Array, "*rest d"]:
    """The residual stream after the norm of this name, by the network's kind of norm."""
    if s.norm == "rms":
        return rms_norm(x, w[name], s.epsilon)
    return layer_norm(x, w[name], w[f"{name}_bias"], s.epsilon)


def _block(
    shape: Decoder, observe: tuple[str, ...], x: Float[Array, "b n d"], w: dict[str, Array]
) -> tuple[Array, dict[str, Array]]:
    """Attention and MLP, each with its residual, and what is observed in them."""
    start = x
    q, k, v = heads(shape, x, w)
    out, b = attended(shape, q, k, v, w.get("sink"))
    x = merged(shape, x, out, w)
    seen = {"attention": b, "inputs": start}
    found = {name: seen[name] for name in observe if name in seen}
    return x, found | ({"entropy": metrics.entropy(b)} if "entropy" in observe else {})


def heads(s: Decoder, x: Float[Array, "*rest d"], w: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Queries [*rest, h, e], keys and values [*rest, k, e] of a block, without positions."""
    z = normed(s, w, "attention_norm", x)
    q, k, v = (jnp.reshape(product(s, w, name, z), (*z.shape[:-1], -1, s.entries)) for name in ("q", "k", "v"))
    return q, k, v


def product(s: Decoder, w: dict[str, Array], name: str, z: Float[Array, "*rest m"]) -> Float[Array, "*rest n"]:
    """The product with a block's matrix, and its bias if it has one."""
    out = (vector_matrix if z.ndim == 1 else dense)(z, w[name])
    return out + w[f"{name}_bias"] if name in s.biases else out


def merged(s: Decoder, x: Float[Array, "*rest d"], out: Float[Array, "*rest h e"], w: dict[str, Array]) -> Float[Array, "*rest d"]:
    """The block's end: what the heads give goes into the residual stream, then the MLP's output."""
    after = x + written(s, out, w)
    return after + product(s, w, "down", units(s, x if s.parallel else after, w))


def written(s: Decoder, out: Float[Array, "*rest h e"], w: dict[str, Array]) -> Float[Array, "*rest d"]:
    """What attention adds to the residual stream."""
    return product(s, w, "o", out.reshape(*out.shape[:-2], -1))


def units(s: Decoder, x: Float[Array, "*rest d"], w: dict[str, Array]) -> Float[Array, "*rest f"]:
    """The MLP's units, by which its last matrix is multiplied, from the residual stream that it reads."""
    z, act = normed(s, w, "mlp_norm", x), ACTIVATIONS[s.activation]
    return act(product(s, w, "gate", z)) * product(s, w, "up", z) if s.mlp == "gated" else act(product(s, w, "up", z))


def turned(s: Decoder, x: Float[Array, "*b n h e"], positions: Int[Array, "*#b n"] | None = None) -> Float[Array, "*b n h e"]:
    """Queries or keys with their positions, if these are rotary."""
    if s.position != "rotary":
        return x
    wide = jnp.promote_types(x.dtype, jnp.float32)  # in bfloat16 positions beyond 256 have no angle of their own
    at = jnp.arange(x.shape[-3], dtype=jnp.int32) if positions is None else positions
    return attention.turn(x.astype(wide), *angles(s, at, wide)).astype(x.dtype)


def angles(s: Decoder, positions: Int[Array, "*b n"], dtype: Any) -> tuple[Float[Array, "*b n half"], Float[Array, "*b n half"]]:
    """Cosines and sines of rotary positions."""
    return attention.angles(positions, s.rotated, s.base, dtype, s.scaling)


def near(s: Decoder, seen: Bool[Array, "*b n m"], distance: Int[Array, "*b n m"]) -> Bool[Array, "*b n m"]:
    """Which keys a query sees, of those that it may see, at these distances from it: those in its window."""
    return seen if s.window is None else seen & (distance < s.window)


def attended(s: Decoder, q: Array, k: Array, v: Array, sink: Array | None) -> tuple[Array, Float[Array, "b h n n"]]:
    """Output [b, n, h, e] and weights of the heads."""
    at = jnp.arange(q.shape[-3], dtype=jnp.int32)
    bias = attention.alibi(at, at, s.heads, s.dtype) if s.position == "alibi" else None
    k, v = (jnp.repeat(part, s.heads // s.key_heads, axis=-2) for part in (turned(s, k), v))
    mask = near(s, attention.causal_mask(at.size), at[:, None] - at)
    return attention.attend(turned(s, q), k, v, kind=s.attention, mask=mask, bias=bias, sink=sink)
