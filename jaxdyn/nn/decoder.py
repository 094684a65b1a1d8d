r"""A LLaMA-style decoder as two pure functions of its weights, which are plain arrays with a leading axis of layers.

.. math:: x \leftarrow x + A(N x), \qquad x \leftarrow x + \bigl(\mathrm{silu}(z W_g) \circ z W_u\bigr) W_d,\ z = N x, \qquad
   N x = g \circ x / \sqrt{\overline{x^2} + \epsilon}

A: softmax attention with rotary positions, causal, without biases; keys and values may have fewer heads than queries, which share
them.
Source: arXiv:2302.13971 (LLaMA), section 2.2; arXiv:2305.13245 (grouped queries); sizes and start: arXiv:2403.03507, table 5 and
its code.
Letters: b sequences of n tokens, L layers, h heads of e numbers, k heads of keys and values, d width, f units of the MLP, V tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import metrics
from jaxdyn.errors import UsageError, require
from jaxdyn.nn import attention
from jaxdyn.nn.transformer import Network

__all__ = ["LLAMA", "OBSERVED", "Decoder", "apply", "decoder", "init", "llama", "parts", "trunk"]

OBSERVED = {
    "attention": "attention weights, [L, b, h, n, n]",
    "entropy": "entropy in nats of every query's attention, [L, b, h, n]",
    "inputs": "residual stream before each block, [L, b, n, d]",
}


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
    epsilon: float = 1e-6
    base: float = 10_000.0  # of the rotary positions
    std: float = 0.02  # of all weights at the start
    scan: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "layers", "heads", "hidden", "key_heads"):
            require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        require(self, self.width % self.heads == 0, "width is a multiple of heads", "width", "heads")
        require(self, self.entries % 2 == 0, "rotary positions need an even number of entries per head", "width", "heads")
        require(self, self.heads % self.key_heads == 0, "heads is a multiple of groups", "heads", "groups")

    @property
    def entries(self) -> int:
        """Numbers in a head."""
        return self.width // self.heads

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.groups is None else self.groups

    @property
    def weights(self) -> dict[str, tuple[int, ...]]:
        """Shapes of a block's matrices, (input, output), by name."""
        d, f, narrow = self.width, self.hidden, self.key_heads * self.entries
        return {"q": (d, d), "k": (d, narrow), "v": (d, narrow), "o": (d, d), "gate": (d, f), "up": (d, f), "down": (f, d)}


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
    if name not in LLAMA:
        raise UsageError(f"llama={name!r} is not allowed: it is one of {', '.join(LLAMA)}")
    width, hidden, heads, layers = LLAMA[name]
    return Decoder(**{"vocabulary": vocabulary, "width": width, "hidden": hidden, "heads": heads, "layers": layers} | more)


def decoder(shape: Decoder) -> Network:
    """The decoder in the form of all networks of this package; it has no dropout."""
    return Network(shape, functools.partial(init, shape), functools.partial(apply, shape), functools.partial(trunk, shape))


def init(shape: Decoder, key: PRNGKeyArray) -> PyTree:
    """Weights N(0, std^2), gains one; drawn in float32 at least."""
    s = shape
    wide = jnp.promote_types(s.dtype, jnp.float32)

    def normal(i: int, *size: int) -> Array:
        return (s.std * jax.random.normal(jax.random.fold_in(key, i), size, wide)).astype(s.dtype)

    blocks = {name: normal(i, s.layers, *size) for i, (name, size) in enumerate(s.weights.items())}
    blocks |= {name: jnp.ones((s.layers, s.width), s.dtype) for name in ("attention_norm", "mlp_norm")}
    params = {"embed": normal(7, s.vocabulary, s.width), "blocks": blocks, "norm": jnp.ones(s.width, s.dtype)}
    return params if s.tied else params | {"head": normal(8, s.vocabulary, s.width)}


def apply(
    shape: Decoder, params: PyTree, tokens: Int[Array, "b n"], *, key: PRNGKeyArray | None = None, observe: Sequence[str] = ()
) -> Any:
    """Logits [b, n, V]; with names of :data:`OBSERVED`, a pair of the logits and a dict of what was asked for."""
    out = trunk(shape, params, tokens, key=key, observe=observe)
    x, seen = out if observe else (out, {})
    logits = x @ params["embed" if shape.tied else "head"].T
    return (logits, seen) if observe else logits


def trunk(
    shape: Decoder, params: PyTree, tokens: Int[Array, "b n"], *, key: PRNGKeyArray | None = None, observe: Sequence[str] = ()
) -> Any:
    """The last residual stream after its norm, [b, n, d], instead of logits.

    Raises:
        UsageError: for a name that is none of :data:`OBSERVED`.
    """
    del key  # there is no dropout
    if unknown := set(observe) - set(OBSERVED):
        raise UsageError(f"cannot observe {', '.join(sorted(unknown))}: it is among {', '.join(OBSERVED)}")
    x, step = params["embed"][tokens], functools.partial(_block, shape, tuple(observe))
    if shape.scan:
        x, seen = jax.lax.scan(step, x, params["blocks"])
    else:
        each = []
        for layer in range(shape.layers):
            x, one = step(x, jax.tree.map(lambda w, i=layer: w[i], params["blocks"]))
            each.append(one)
        seen = jax.tree.map(lambda *a: jnp.stack(a), *each)
    x = rms_norm(x, params["norm"], shape.epsilon)
    return (x, seen) if observe else x


def parts(shape: Decoder) -> tuple[Callable[..., Array], Callable[..., Array], Callable[..., Array]]:
    """The decoder in parts, for training that sees one layer at a time.

    ``enter(rest, tokens) -> x``, ``block(w, x) -> x`` with the weights of one layer, and ``read(rest, x) -> logits``; ``rest`` are
    the parameters without the blocks.
    """

    def read(rest: PyTree, x: Float[Array, "b n d"]) -> Float[Array, "b n V"]:
        return rms_norm(x, rest["norm"], shape.epsilon) @ rest["embed" if shape.tied else "head"].T

    return (lambda rest, tokens: rest["embed"][tokens]), (lambda w, x: _block(shape, (), x, w)[0]), read


def rms_norm(x: Float[Array, "*rest d"], gain: Float[Array, " d"], epsilon: float) -> Float[Array, "*rest d"]:
    """The root-mean-square norm, in float32 at least. Source: arXiv:1910.07467, equation 4."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return (wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), -1, keepdims=True) + epsilon)).astype(x.dtype) * gain


def _block(
    shape: Decoder, observe: tuple[str, ...], x: Float[Array, "b n d"], w: dict[str, Array]
) -> tuple[Array, dict[str, Array]]:
    """Attention and MLP, each with its residual, and what is observed in them."""
    start, z = x, rms_norm(x, w["attention_norm"], shape.epsilon)
    change, b = _attention(shape, z, w)
    x = x + change
    z = rms_norm(x, w["mlp_norm"], shape.epsilon)
    x = x + (jax.nn.silu(z @ w["gate"]) * (z @ w["up"])) @ w["down"]
    seen = {"attention": b, "inputs": start}
    found = {name: seen[name] for name in observe if name in seen}
    return x, found | ({"entropy": metrics.entropy(b)} if "entropy" in observe else {})


def _attention(s: Decoder, z: Float[Array, "b n d"], w: dict[str, Array]) -> tuple[Float[Array, "b n d"], Float[Array, "b h n n"]]:
    """Output and weights of the heads."""
    q, k, v = (jnp.reshape(z @ w[name], (*z.shape[:-1], -1, s.entries)) for name in ("q", "k", "v"))
    wide = jnp.promote_types(z.dtype, jnp.float32)  # in bfloat16 positions beyond 256 have no angle of their own
    q, k = (attention.rotate(part.astype(wide), s.base).astype(z.dtype) for part in (q, k))
    k, v = (jnp.repeat(part, s.heads // s.key_heads, axis=-2) for part in (k, v))
    out, b = attention.attend(q, k, v, mask=attention.causal_mask(z.shape[-2]))
    return out.reshape(z.shape) @ w["o"], b
