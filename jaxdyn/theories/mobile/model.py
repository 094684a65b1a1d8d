r"""Small decoders in the variants that MobileLLM compares, all in one program: which variant is a traced number.

There are 2n blocks and places. A variant uses the first of the blocks, one at each of its first places, as many as its depth, and
does nothing at the others. Heads that share keys and values use the same columns of these matrices. Weights that are not used have
no gradient: to rounding, each variant is the decoder of its own shape (:func:`shape_of`) and trains like it.

======= =================================================== ====== =====
variant what                                                blocks depth
======= =================================================== ====== =====
base    tied read-out, keys and values for each head        n      n
untied  a read-out of its own, for which it gives up one    n - 1  n - 1
        block
half    two heads share keys and values                     n      n
one     all heads share keys and values                     n      n
twice   each block twice in a row: 1, 1, 2, 2, ... (LS)     n      2n
again   all blocks once more: 1, ..., n, 1, ..., n          n      2n
deep    blocks of their own                                 2n     2n
======= =================================================== ====== =====

Source: arXiv:2402.14905, sections 2.2 (tied read-out, grouped queries, depth) and 2.3 (immediate block-wise sharing).
Letters: n blocks (in shapes of arrays: tokens of a sequence), b sequences, d width, m places, V tokens of the vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import nn
from jaxdyn.nn import cache
from jaxdyn.nn.transformer import embedded, init, parts, rms_norm

VARIANTS = ("base", "untied", "half", "one", "twice", "again", "deep")


class Variant(NamedTuple):
    """One variant in numbers."""

    blocks: Int[Array, ""]  # of their own
    depth: Int[Array, ""]  # blocks that a token passes
    share: Int[Array, ""]  # heads that use the same keys and values
    tied: Bool[Array, ""]
    again: Bool[Array, ""]  # blocks that are used twice are so after all others, not in a row


def shape_of(name: str, base: nn.Transformer) -> nn.Transformer:
    """The decoder of a variant, by itself.

    Args:
        name: one of :data:`VARIANTS`.
        base: the decoder of the variant "base".
    """
    fields = {"vocabulary": base.vocabulary, "width": base.width, "layers": base.layers, "heads": base.heads, "hidden": base.hidden}
    change = {
        "untied": {"tied": False, "layers": max(1, base.layers - 1)},
        "half": {"groups": max(1, base.heads // 2)},
        "one": {"groups": 1},
        "twice": {"repeats": 2},
        "again": {"repeats": 2, "order": "all"},
        "deep": {"layers": 2 * base.layers},
    }.get(name, {})
    return nn.Transformer(**fields | {"tied": True, "std": base.std, "dtype": base.dtype} | change)


def variant(index: Int[Array, ""], base: nn.Transformer) -> Variant:
    """The variant of a number, which may be traced."""
    shapes = [shape_of(name, base) for name in VARIANTS]
    columns = zip(*((s.layers, s.depth, s.heads // s.key_heads, s.tied, s.order == "all") for s in shapes), strict=True)
    return Variant(*(jnp.asarray(np.asarray(column))[index] for column in columns))


def wide(base: nn.Transformer) -> nn.Transformer:
    """The decoder whose weights hold those of every variant: two stacks of blocks, heads with their own keys, a read-out."""
    return nn.Transformer(
        vocabulary=base.vocabulary,
        width=base.width,
        layers=2 * base.layers,
        heads=base.heads,
        hidden=base.hidden,
        std=base.std,
        dtype=base.dtype,
    )


def started(params: PyTree, depth: int | Int[Array, ""]) -> PyTree:
    r"""Weights at the start: the two matrices that write into the residual stream are divided by :math:`\sqrt{2 \cdot depth}`.

    Source: Radford et al. 2019, section 2.3.
    """
    factor = jax.lax.rsqrt(2 * jnp.asarray(depth, params["norm"].dtype))
    blocks = {name: w * factor if name in ("o", "down") else w for name, w in params["blocks"].items()}
    return params | {"blocks": blocks}


def trunk(base: nn.Transformer, f: Variant, params: PyTree, tokens: Int[Array, "b n"]) -> Float[Array, "b n d"]:
    """The last residual stream after its norm."""
    shape = wide(base)
    place = jnp.arange(shape.layers, dtype=jnp.int32)
    twice = f.depth > f.blocks
    which = jnp.where(twice & ~f.again, place // 2, place % f.blocks)
    columns = jnp.arange(shape.heads, dtype=jnp.int32) // f.share * f.share

    def shared(w: Float[Array, "m d d"]) -> Float[Array, "m d d"]:
        return w.reshape(*w.shape[:2], shape.heads, -1)[:, :, columns].reshape(w.shape)

    used = {name: (shared(w) if name in ("k", "v") else w)[which] for name, w in params["blocks"].items()}
    block = parts(shape)[1]

    def one(x: Array, here: tuple[dict[str, Array], Array]) -> tuple[Array, None]:
        w, i = here
        return jax.lax.cond(i < f.depth, lambda x: block(w, x), lambda x: x, x), None

    x = embedded(shape, params, tokens, jnp.arange(tokens.shape[-1], dtype=jnp.int32))
    x, _ = jax.lax.scan(one, x, (used, place))
    return rms_norm(x, params["norm"], shape.epsilon)


def read_out(f: Variant, params: PyTree) -> Float[Array, "V d"]:
    """The embedding or a matrix of its own."""
    return jnp.where(f.tied, params["embed"], params["head"])


def weights_of(shape: nn.Transformer) -> int:
    """How many weights a decoder has."""
    return nn.count(jax.eval_shape(lambda: init(shape, jax.random.key(0))))


def bytes_of(shape: nn.Transformer, length: int) -> int:
    """Bytes of the keys and values of a text."""
    return cache.bytes_held(shape, cache.Policy(kind="dense", size=length)).keys_values
