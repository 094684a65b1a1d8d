r"""Sequences that mix codes and text: the first tokens of a trace give way to codes between two delimiters.

.. math:: P\ \langle b\rangle\ z_1 \dots z_k\ \langle e\rangle\ t_{rk + 1} \dots t_t\ S, \qquad k = \lfloor \min(m, t) / r \rfloor

All sequences are padded to one length, and how many tokens are replaced may be traced, so that every way to replace them is data.
Source: arXiv:2502.03275, sections 3.1 and 3.2. Departure: m need not be a multiple of r; what is left over stays text.
Letters: P prompt of p tokens, t tokens of a trace, z codes of r tokens each, m tokens to replace, S solution, T length of a padded
sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxdyn.data.traces import Forest

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
