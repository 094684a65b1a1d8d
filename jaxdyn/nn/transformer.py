r"""One transformer for all experiments, in flax.linen, behind two pure functions ``init`` and ``apply``.

.. math:: x \leftarrow N(x + A(x)),\ x \leftarrow N(x + F(x)) \ \text{(post)}; \qquad
   x \leftarrow x + A(N x),\ x \leftarrow x + F(N x) \ \text{(pre)}

A: attention over the heads (:mod:`jaxdyn.nn.attention`), F: two-layer MLP, N: layer norm. Layers are scanned: their parameters are
stacked along a leading axis, and a deep network compiles as fast as a shallow one.
Letters: b sequences of n tokens, L layers, h heads, d width, m units of the MLP, V tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import ScopeParamNotFoundError, ScopeParamShapeError
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import metrics
from jaxdyn.errors import UsageError
from jaxdyn.linalg import dense
from jaxdyn.nn import attention
from jaxdyn.nn.config import Shape
from jaxdyn.nn.init import rules
from jaxdyn.nn.observe import mean_cosine
from jaxdyn.nn.tokens import checked

__all__ = ["OBSERVABLES", "Network", "count", "network", "read_out"]

OBSERVABLES = {
    "attention": "attention weights, [L, b, h, n, n]",
    "entropy": "entropy in nats of every query's attention, [L, b, h, n]",
    "inputs": "residual stream before each block and after the last (and its norm, if there is one), [L + 1, b, n, d]",
    "hidden": "units of the MLPs after their activation, [L, b, n, m]",
    "stable_rank": "stable rank of the lower matrix of each MLP, [L]",
    "cosine": "mean |cos| of the embeddings, then of the rows that each MLP writes into the residual stream, [L + 1]",
}
ACTIVATIONS: dict[str, Callable] = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "linear": lambda x: x}


class Network(NamedTuple):
    """A transformer as two pure functions of its weights.

    ``init(key) -> params``. ``apply(params, tokens, *, key=None, observe=())``: logits [b, n, V] of integer tokens [b, n]; with a
    key dropout is on; with names from :data:`OBSERVABLES` in ``observe``, a pair of the logits and a dict of what was asked for.
    ``trunk`` is ``apply`` without the read-out: it returns the last residual stream [b, n, d] instead of logits, for losses that
    never hold all logits. Known tokens outside the vocabulary are refused, of traced ones other dtypes
    and shapes (:mod:`jaxdyn.nn.tokens`).
    """

    shape: Shape
    init: Callable[..., PyTree]
    apply: Callable[..., Any]
    trunk: Callable[..., Any]


def network(shape: Shape) -> Network:
    """The network of a shape."""
    module = Transformer(shape)

    def init(key: PRNGKeyArray) -> PyTree:
        return module.init(key, jnp.zeros((1, 1), jnp.int32), read=True)["params"]

    return Network(shape, init, functools.partial(_apply, module, True), functools.partial(_apply, module, False))


def count(params: PyTree) -> int:
    """Number of weights."""
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def read_out(params: PyTree) -> tuple[Float[Array, "V d"], Float[Array, " V"]]:
    """Matrix and shift that turn the last residual stream into logits, ``x @ matrix.T + shift``."""
    head = params["head"] if "head" in params else params["embed"]
    return head, params["head_bias"] if "head_bias" in params else jnp.zeros(head.shape[0], head.dtype)


def _apply(
    module: Transformer,
    read: bool,
    params: PyTree,
    tokens: Int[Array, "b n"],
    *,
    key: PRNGKeyArray | None = None,
    observe: Sequence[str] = (),
) -> Any:
    unknown = set(observe) - set(OBSERVABLES)
    if unknown:
        raise UsageError(f"cannot observe {', '.join(sorted(unknown))}: it is among {', '.join(OBSERVABLES)}")
    tokens = checked(tokens, module.shape.vocabulary, least=1)
    random = None if key is None else {"dropout": key}
    _refuse_other_layers(module.shape, params)
    try:
        out, seen = module.apply({"params": params}, tokens, read=read, drop=key is not None, observe=tuple(observe), rngs=random)
    except (ScopeParamNotFoundError, ScopeParamShapeError) as error:
        raise UsageError(f"these weights are of another network: {str(error).partition(' (http')[0]}") from error
    if not observe:
        return out
    found = {name: seen[name] for name in observe if name in seen}
    still = jax.lax.stop_gradient(params)  # singular values have no derivative here, and may be watched next to a loss
    if "stable_rank" in observe:
        found["stable_rank"] = metrics.stable_rank(still["blocks"]["inner"])
    if "cosine" in observe:
        written = jax.lax.map(mean_cosine, still["blocks"]["outer"])
        found["cosine"] = jnp.concatenate([mean_cosine(still["embed"])[None], written])
    return out, found


def _refuse_other_layers(shape: Shape, params: PyTree) -> None:
    """Refuse stacks of another number of layers."""
    counts = {leaf.shape[0] for leaf in jax.tree.leaves(params["blocks"])}
    if counts != {shape.layers}:
        raise UsageError(
            f"these weights are of another network: they have {', '.join(map(str, counts))} layers, layers={shape.layers}"
        )


def sinusoidal(n: int, width: int, dtype: str) -> Float[Array, "n d"]:
    r"""Positions :math:`\sin(i\,10^{-4 \cdot 2j/d})` and cosines, alternating. Source: arXiv:1706.03762, section 3.5."""
    rate = 10_000.0 ** (-jnp.arange(0, width, 2, dtype=dtype) / width)
    angle = jnp.arange(n, dtype=dtype)[:, None] * rate
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], -1).reshape(n, -1)[:, :width]


def _dropout(s: Shape, place: str, on: bool) -> nn.Dropout:
    """Dropout of one place; a rate in the network's precision, or float32 networks draw float64 numbers inside ``enable_x64``."""
    rate = jnp.dtype(s.dtype).type(s.dropout if place in s.drops else 0)
    return nn.Dropout(rate, deterministic=not on)


class LayerNorm(nn.Module):
    """Layer norm over the width, with gain and shift."""

    shape: Shape

    @nn.compact
    def __call__(self, x: Float[Array, "*b n d"]) -> Float[Array, "*b n d"]:
        """Normalise; the mean of squared deviations, not of squares minus the squared mean: that one cancels."""
        s = self.shape
        gain = self.param("gain", nn.initializers.ones, (s.width,), s.dtype)
        shift = self.param("shift", nn.initializers.zeros, (s.width,), s.dtype)
        x = x - jnp.mean(x, -1, keepdims=True)
        return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + s.epsilon) * gain + shift


class Block(nn.Module):
    """Attention and MLP, each with its residual."""

    shape: Shape
    drop: bool
    observe: tuple[str, ...]

    def dropped(self, x: Float[Array, "*shape"], place: str) -> Float[Array, "*shape"]:
        """``x`` with dropout, if this place has any."""
        return _dropout(self.shape, place, self.drop)(x)

    def weight(self, name: str, *shape: int) -> Float[Array, "*shape"]:
        """A parameter drawn by its rule."""
        return self.param(name, rules(self.shape)[name], shape, self.shape.dtype)

    def attention(self, x: Float[Array, "*b n d"]) -> tuple[Float[Array, "*b n d"], Float[Array, "*b h n n"]]:
        """Output and weights of the heads."""
        s = self.shape
        packed = dense(x, self.weight("qkv", s.width, 3 * s.width))
        if s.attention_bias:
            packed = packed + self.weight("qkv_bias", 3 * s.width)
        q, k, v = (part.reshape(*x.shape[:-1], s.heads, -1) for part in jnp.split(packed, 3, -1))
        if s.position == "rotary":
            q, k = attention.rotate(q), attention.rotate(k)
        mask = attention.causal_mask(x.shape[-2]) if s.causal else None
        at = jnp.arange(x.shape[-2], dtype=jnp.int32)
        bias = attention.alibi(at, at, s.heads, s.dtype) if s.position == "alibi" else None
        sink = self.weight("sink", s.heads) if s.attention == "sink_bias" else None
        drop = functools.partial(self.dropped, place="attention")
        out, b = attention.attend(q, k, v, kind=s.attention, mask=mask, bias=bias, sink=sink, drop=drop)
        out = out.reshape(x.shape)
        if s.project:
            out = dense(out, self.weight("out", s.width, s.width))
            if s.attention_bias:
                out = out + self.weight("out_bias", s.width)
        return self.dropped(out, "residual"), b

    def mlp(self, x: Float[Array, "*b n d"]) -> tuple[Float[Array, "*b n d"], Float[Array, "*b n m"]]:
        """Output and units of the MLP."""
        s = self.shape
        units = dense(x, self.weight("inner", s.width, s.hidden)) + self.weight("inner_bias", s.hidden)
        units = ACTIVATIONS[s.activation](units)
        out = dense(self.dropped(units, "mlp"), self.weight("outer", s.hidden, s.width)) + self.weight("outer_bias", s.width)
        return self.dropped(out, "residual"), units

    @nn.compact
    def __call__(self, x: Float[Array, "*b n d"], _: None) -> tuple[Float[Array, "*b n d"], dict[str, Array]]:
        """The block's output, and what is observed in it."""
        norms = [LayerNorm(self.shape, name=f"norm{i}") if self.shape.norm != "none" else (lambda x: x) for i in (1, 2)]
        pre = self.shape.norm == "pre"
        start = x
        change, b = self.attention(norms[0](x) if pre else x)
        x = x + change if pre else norms[0](x + change)
        change, units = self.mlp(norms[1](x) if pre else x)
        x = x + change if pre else norms[1](x + change)
        seen = {"inputs": start, "hidden": units, "attention": b}
        found = {name: seen[name] for name in self.observe if name in seen}
        if "entropy" in self.observe:
            found["entropy"] = metrics.entropy(b)
        return x, found


class Transformer(nn.Module):
    """Embedding, scanned blocks, read-out."""

    shape: Shape

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "*b n"], *, read: bool, drop: bool = False, observe: tuple[str, ...] = ()
    ) -> tuple[Float[Array, "*b n out"], dict[str, Array]]:
        """Logits (``read``) or the last residual stream, and what is observed."""
        s, start = self.shape, rules(self.shape)
        embed = self.param("embed", start["embed"], (s.vocabulary, s.width), s.dtype)
        x = jnp.asarray(embed)[tokens] * s.scale
        n = tokens.shape[-1]
        if s.position == "sinusoidal":
            x = x + sinusoidal(n, s.width, s.dtype)
        if s.position == "learned":
            if n > s.length:
                raise UsageError(f"this network has learned {s.length} positions (length), got {n} tokens")
            x = x + self.param("position", start["position"], (s.length, s.width), s.dtype)[:n]
        x = _dropout(s, "embedding", drop)(x)
        blocks = nn.scan(
            Block,
            variable_axes={"params": 0},
            split_rngs={"params": not s.copies, "dropout": True},
            length=s.layers,
            in_axes=nn.broadcast,
        )
        x, seen = blocks(s, drop, observe, name="blocks")(x, None)
        if s.norm == "pre":
            x = LayerNorm(s, name="norm")(x)
        if "inputs" in observe:
            seen = seen | {"inputs": jnp.concatenate([seen["inputs"], x[None]])}
        # [V, d] as the embedding
        head = embed if s.tied else self.param("head", start["head"], (s.logits, s.width), s.dtype)
        shift = self.param("head_bias", start["head_bias"], (s.logits,), s.dtype) if s.head_bias else jnp.zeros((), s.dtype)
        return dense(x, head.T) + shift if read else x, seen
