r"""Sequences that mix codes and text, and the autoencoder that gives the codes.

Sequences that mix codes and text: the first tokens of a trace give way to codes between two delimiters.

.. math:: P\ \langle b\rangle\ z_1 \dots z_k\ \langle e\rangle\ t_{rk + 1} \dots t_t\ S, \qquad k = \lfloor \min(m, t) / r \rfloor

All sequences are padded to one length, and how many tokens are replaced may be traced, so that every way to replace them is data.
Source: arXiv:2502.03275, sections 3.1 and 3.2. Departure: m need not be a multiple of r; what is left over stays text.
Letters: P prompt of p tokens, t tokens of a trace, z codes of r tokens each, m tokens to replace, S solution, T length of a padded
sequence.

The autoencoder of traces: its setting, its training on chunks, and the codes of a trace.

It is :mod:`jaxdyn.nn.vq`, trained by Adam on chunks of r tokens from logs of searches, each with the prompt of its problem; its
codebook starts as what the encoder makes of some chunks, or from random vectors.
Source: arXiv:2502.03275, section 3.1. Departure: sizes; the codebook's start is ours.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.data import traces
from jaxdyn.data.traces import Forest
from jaxdyn.nn import vq

SOLUTION = 3  # tokens: "answer", the candidate, "end"


class Sequence(NamedTuple):
    """Tokens of a padded sequence, and which of them a network learns to predict."""

    tokens: Int[Array, " T"]
    due: Bool[Array, " T"]


def longest(forest: Forest) -> int:
    """T: a prompt, both delimiters, a trace and a solution."""
    return forest.prompt + forest.trace + 2 + SOLUTION


def replaced(
    forest: Forest, trace: Int[Array, " t"], codes: Int[Array, " c"], m: Int[Array, ""] | int, rate: int
) -> tuple[Int[Array, " t+2"], Int[Array, ""]]:
    """A trace whose first ``m`` tokens are replaced by codes, padded with "none", and its length.

    Codes are numbered from ``forest.text`` on.
    """
    k = jnp.minimum(m, trace.size) // rate
    at = jnp.arange(trace.size + 2, dtype=jnp.int32)
    text = trace[jnp.clip(rate * k + at - k - 2, 0, trace.size - 1)]
    code = forest.text + codes[jnp.clip(at - 1, 0, codes.size - 1)]
    inside = jnp.where(at == 0, forest.special("begin latent"), jnp.where(at <= k, code, forest.special("end latent")))
    length = 2 + k + trace.size - rate * k
    filled = jnp.where(at < k + 2, inside, text)
    return jnp.where(at < length, filled, forest.special("none")).astype(jnp.int32), length.astype(jnp.int32)


def opened(
    forest: Forest, row: Int[Array, " n"], length: Int[Array, ""], texts: Int[Array, "c r"]
) -> tuple[Int[Array, " t"], Int[Array, ""]]:
    """The trace of a row in which each code is replaced by its text ``texts[code]``, padded with "none", and its length."""
    rate = texts.shape[1]
    k = jnp.argmax(row == forest.special("end latent")) - 1
    at = jnp.arange(row.size - 2, dtype=jnp.int32)
    code = jnp.clip(row[1 + at // rate] - forest.text, 0, len(texts) - 1)
    text = row[jnp.clip(at - rate * k + k + 2, 0, row.size - 1)]
    size = length - 2 - k + rate * k
    filled = jnp.where(at < rate * k, texts[code, at % rate], text)
    return jnp.where(at < size, filled, forest.special("none")), size.astype(jnp.int32)


def middle(
    forest: Forest,
    trace: Int[Array, " t"],
    codes: Int[Array, " c"],
    m: Int[Array, ""] | int,
    rate: int,
    delimited: Bool[Array, ""] | bool,
    kept: Bool[Array, ""] | bool,
) -> tuple[Int[Array, " t+2"], Int[Array, ""]]:
    """What stands between prompt and solution: a replaced trace; the plain trace if not ``delimited``; nothing if not ``kept``."""
    row, length = replaced(forest, trace, codes, jnp.where(delimited, m, 0), rate)
    row, length = jnp.where(delimited, row, jnp.roll(row, -2)), jnp.where(delimited, length, length - 2)
    return row, jnp.where(kept, length, 0)


def whole(
    forest: Forest, prompt: Int[Array, " p"], row: Int[Array, " n"], length: Int[Array, ""], target: Int[Array, ""]
) -> Sequence:
    """Prompt, the first ``length`` tokens of a row, and the solution; all but the prompt and the padding is to be predicted."""
    answer = jnp.stack([jnp.int32(forest.special("answer")), target, jnp.int32(forest.special("end"))])
    rest = jnp.concatenate([row, jnp.full((SOLUTION,), forest.special("none"), jnp.int32)])
    at = jnp.arange(rest.size, dtype=jnp.int32)
    solved = (at >= length) & (at < length + SOLUTION)
    tail = jnp.where(solved, answer[jnp.clip(at - length, 0, SOLUTION - 1)], rest)
    return Sequence(jnp.concatenate([prompt, tail]), jnp.concatenate([jnp.zeros(prompt.size, bool), at < length + SOLUTION]))


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
    vq_steps: jd.Swept = jd.field(300.0, at_least=0, whole=True)
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
