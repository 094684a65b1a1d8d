"""The language models that are compared, and their training.

Small decoders in the variants that MobileLLM compares, all in one program: which variant is a traced number.

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

Training a small decoder on a text, and what judges of trained networks share: each at its own rate, and the gate.

Source: arXiv:2402.14905, section 2, at a size for CPUs. Departure: the optimizer is ours (Adam on gradients of norm 1 at most, a
linear warm-up of a tenth of the steps and a cosine to a tenth), and a network is judged by its cross-entropy, not by tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import nn, text, train
from jaxdyn.nn import cache
from jaxdyn.nn.transformer import embedded, init, parts, rms_norm
from jaxdyn.text import pretraining

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
    fields: dict[str, Any] = {
        "vocabulary": base.vocabulary,
        "width": base.width,
        "layers": base.layers,
        "heads": base.heads,
        "hidden": base.hidden,
    }
    changes: dict[str, dict[str, Any]] = {
        "untied": {"tied": False, "layers": max(1, base.layers - 1)},
        "half": {"groups": max(1, base.heads // 2)},
        "one": {"groups": 1},
        "twice": {"repeats": 2},
        "again": {"repeats": 2, "order": "all"},
        "deep": {"layers": 2 * base.layers},
    }
    change = {"tied": True, "std": base.std, "dtype": base.dtype} | changes.get(name, {})
    return nn.Transformer(**fields | change)


def variant(index: int | Int[Array, ""], base: nn.Transformer) -> Variant:
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


RATES = [4e-3, 8e-3]


@jd.setting
class Training(pretraining.TextTraining):
    """A training on a text, to the fields of which these are added.

    Args:
        lr: peak of the rate.
        vocabulary: tokens; bytes are 256.
        windows: batches of sequences on which the loss of a part is the mean.
        std: of all weights at the start.
        dtype: of the network.
    """

    lr: jd.Swept = jd.field(6e-3, above=0)
    vocabulary: int = 256
    batch: int = jd.field(4, at_least=1)
    steps: int = jd.field(120, at_least=10)
    records: int = jd.field(1, at_least=1)
    windows: int = jd.field(16, at_least=1)
    std: float = jd.field(0.1, above=0)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """As for every training on a text."""
        pretraining.TextTraining.__post_init__(self)

    def corpus(self) -> text.Corpus:
        """The text; it may have fewer tokens than the vocabulary, and not more."""
        words = self.vocabulary - (self.level == "words")  # the mark of all other words is one of the tokens
        with jax.ensure_compile_time_eval():  # as for every training on a text
            corpus = text.load(self.text, self.level, None if self.level == "bytes" else words)
        count = len(corpus.vocabulary)
        jd.require(self, count <= self.vocabulary, f"the text has {count} different tokens", "vocabulary")
        return corpus


def trained(
    s: Training, loss: Callable[[PyTree, Int[Array, "b n1"]], Float[Array, ""]], params: PyTree, key: PRNGKeyArray
) -> tuple[train.State, Float[Array, "step part"]]:
    """The last state, and the losses of both parts along training.

    Args:
        s: the training.
        loss: of weights on sequences.
        params: weights at the start.
        key: of the sequences; networks with the same key read the same ones.
    """
    corpus = s.corpus()
    stream = jnp.asarray(corpus.train)
    held = pretraining.held_out((corpus.valid, corpus.test), s.windows, s.batch, s.length)
    shape = pretraining.schedule(s.steps)
    tx = optax.chain(optax.scale_by_adam(b2=0.99), optax.scale_by_learning_rate(lambda count: s.lr * shape(count).astype(s.dtype)))

    def batch(i: Int[Array, ""]) -> Int[Array, "b n1"]:
        return pretraining.sample(jax.random.fold_in(key, i), stream, s.batch, s.length)

    def losses(state: train.State) -> Float[Array, " part"]:
        return pretraining.mean_losses(lambda tokens: loss(state.params, tokens), held)

    step = train.make_step(loss, tx, batch)
    return train.record(step, train.init(tx, params), losses, samples=s.records, every=s.interval)


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every network at the rate with the lowest validation loss at the end, mean over seeds."""
    if "lr" not in ds.dims:
        return ds
    valid = ds.curve.isel(step=-1, drop=True).sel(part="valid", drop=True)
    return ds.isel(lr=valid.mean("seed").fillna(np.inf).argmin("lr"))


def learned(ds: xr.Dataset) -> jd.Check:
    """Gate: every network, at its own rate, lowers its loss by a nat."""
    best = tuned(ds)
    start = best.curve.isel(step=0, drop=True).sel(part="test", drop=True)
    return jd.gate("loss at the start minus that at the end", start - best.measured_loss, at_least=1.0)
