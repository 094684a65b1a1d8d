r"""The autoencoder of traces: its setting, its training on chunks, and the codes of a trace.

It is :mod:`jaxdyn.nn.vq`, trained by Adam on chunks of r tokens from logs of searches, each with the prompt of its problem; its
codebook starts as what the encoder makes of some chunks, or from random vectors.
Source: arXiv:2502.03275, section 3.1. Departure: sizes; the codebook's start is ours.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import traces
from jaxdyn.nn import vq

BOOKS = ("gradient", "averages")


@jd.setting
class Coding:
    """Task, autoencoder and its training.

    Args:
        book: how the codebook moves, by its gradient or as averages.
        vq_lr: rate of the autoencoder.
        beta: factor of its commitment.
        decay: of the averages.
        spread: 1, or 0 for a codebook that starts from random vectors.
        vq_steps: steps of its training.
        children, height: of the trees.
        sentences: whether their logs are written in sentences.
        rate: tokens of a code.
        codes: vectors of the codebook.
        code_width: numbers in a vector of the codebook.
        vq_hidden: hidden units of the encoder, and as many of the decoder of chunks.
        vq_batch: chunks of a step.
    """

    book: jd.Code = jd.code(*BOOKS)
    vq_lr: jd.Swept = jd.field(3e-3, above=0)
    beta: jd.Swept = 0.25
    decay: jd.Swept = jd.field(0.95, at_least=0, below=1)
    spread: jd.Swept = 1.0
    vq_steps: jd.Swept = jd.field(300.0, at_least=0)
    children: int = 1
    height: int = 4
    sentences: bool = False
    rate: int = jd.field(2, role="none")
    codes: int = 32
    code_width: int = 16
    vq_hidden: int = 64
    vq_batch: int = jd.field(128, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        whole = self.rate >= 1 and self.forest().trace % self.rate == 0
        jd.require(self, whole, "the trace is a multiple of rate", "rate", "height", "children")
        self.chunks()

    def forest(self) -> traces.Forest:
        """The task."""
        return traces.Forest(children=self.children, height=self.height, sentences=self.sentences)

    def chunks(self) -> vq.Chunks:
        """The autoencoder; its chunks are those of one code."""
        sizes = {"length": self.rate, "rate": self.rate, "width": self.code_width, "hidden": self.vq_hidden}
        return vq.Chunks(vocabulary=self.forest().text, codes=self.codes, dtype=self.dtype, **sizes)


class Coder(NamedTuple):
    """An autoencoder along its training."""

    params: vq.Params
    averages: vq.Averages


def problems(s: Coding, key: PRNGKeyArray, count: int) -> traces.Problem:
    """Problems, [count, ...] each."""
    return jax.vmap(lambda k: traces.draw(k, s.forest()))(jax.random.split(key, count))


def pieces(s: Coding, key: PRNGKeyArray, count: int) -> tuple[Int[Array, "count r"], Int[Array, "count p"]]:
    """A chunk of each of ``count`` problems, at a random place, and the prompts."""
    k_draw, k_at = jax.random.split(key)
    some = problems(s, k_draw, count)
    parts = some.trace.reshape(count, -1, s.rate)
    at = jax.random.randint(k_at, (count,), 0, parts.shape[1], jnp.int32)
    return jnp.take_along_axis(parts, at[:, None, None], 1)[:, 0], some.prompt


def begun(s: Coding, key: PRNGKeyArray) -> vq.Params:
    """The autoencoder before its training; seeds alone decide it."""
    k_init, k_first = jax.random.split(key)
    plain = vq.init(s.chunks(), k_init)
    spread = vq.spread(s.chunks(), plain, pieces(s, k_first, s.codes)[0])
    return plain._replace(codebook=jnp.where(s.spread > 0, spread.codebook, plain.codebook))


def fitted(s: Coding, key: PRNGKeyArray) -> vq.Params:
    """The autoencoder after its training."""
    shape = s.chunks()
    k_init, k_data = jax.random.split(key)
    params = begun(s, k_init)
    moving = jnp.asarray(s.book == "gradient", s.dtype)
    tx = optax.adam(s.vq_lr)

    def step(i: Int[Array, ""], carry: tuple[Coder, PyTree]) -> tuple[Coder, PyTree]:
        (params, averages), opt = carry
        chunk, prompt = pieces(s, jax.random.fold_in(k_data, i), s.vq_batch)
        gradient = jax.grad(lambda p: vq.loss(shape, p, chunk, prompt, s.beta, moving))(params)
        updates, opt = tx.update(gradient, opt, params)
        new = optax.apply_updates(params, updates)
        x = vq.encode(shape, params, chunk).reshape(-1, s.code_width)
        averages, book = vq.averaged(averages, x, vq.nearest(x, params.codebook), s.decay)
        new = new._replace(codebook=jnp.where(moving > 0, new.codebook, book))
        return Coder(train.learned(params, new), averages), opt

    start = (Coder(params, vq.started(params.codebook)), tx.init(params))
    return jax.lax.fori_loop(0, jnp.round(s.vq_steps).astype(jnp.int32), step, start)[0].params


def recode(s: Coding, coder: vq.Params, trace: Int[Array, "*b t"]) -> Int[Array, "*b c"]:
    """The codes of traces."""
    parts = trace.reshape(*trace.shape[:-1], -1, s.rate)
    return vq.nearest(vq.encode(s.chunks(), coder, parts)[..., 0, :], coder.codebook)


def restored(s: Coding, coder: vq.Params, trace: Int[Array, "b t"], prompt: Int[Array, "b p"], codes: Int[Array, "b c"]) -> Array:
    """Which tokens of the traces the decoder restores from codes, [b, t]."""
    many = jnp.broadcast_to(prompt[:, None], (*codes.shape, prompt.shape[1]))
    said = jnp.argmax(vq.decode(s.chunks(), coder, coder.codebook[codes[..., None]], many), -1)
    return said.reshape(trace.shape) == trace
