r"""Sequences of words and relations for a multi-layer transformer; a word is an entity's name of k tokens.

``reversal``: pairs, :math:`A_i \to B_i` and :math:`B_i \leftarrow A_i`; training holds both of a training pair and one, at random,
of a validation pair; the other one is for validation. ``cot``: triples, :math:`A_i \to B_i`, :math:`B_i \to C_i` (direct) and
:math:`A_i \leadsto C_i` (indirect); training holds all three of a training triple and the direct two of a validation triple.
``relevant``: the same with :math:`A_i = (a, i)`, :math:`B_i = (b, i)`, :math:`C_i = (c, i)`: three letters, and index tokens that
the members of a triple share. ``context``: :math:`x \to y \Leftrightarrow y \leftarrow x`, the forward fact before the backward
one; of the ten y of every x, seven are in training.

Source: arXiv:2405.04669, section 5, and the defaults of its released code. Letters: V tokens for entities (relations have the
numbers V, V + 1, V + 2), m pairs or triples of which P are for training and T for validation, k tokens per word, n tokens per
sequence, S sequences, those of validation last.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxdyn.errors import UsageError

TASKS = ("reversal", "cot", "relevant", "context")
ANSWERS, HELD_OUT = 10, 3  # in-context: y tokens, and how many of them are held out for every x


class Sizes(NamedTuple):
    """How many pairs or triples are for training and validation, what they make, and of what shape."""

    train_facts: int
    validation_facts: int
    train: int  # sequences
    validation: int
    word: int
    length: int  # tokens of a sequence
    tokens: int  # relations included


class Facts(NamedTuple):
    """All sequences, training ones first; the words of A, B (and C); which validation pairs are known as A -> B."""

    sequences: Int[Array, "S n"]
    words: Int[Array, "r m k"]
    forward: Bool[Array, " T"]


def sizes(task: str, vocabulary: int, word: int = 1) -> Sizes:
    """Numbers of a task; at V = 800: 140 and 60 pairs (340 and 60 sequences), 140 and 60 triples (540 and 60).

    Words of three tokens are fewer: 100 and 50 pairs. Relevant tokens: 500 and 50 triples. In context (V = 400): 100 x, ten y.

    Raises:
        UsageError: unknown task, a word size that is not 1, 2 or 3, or too few tokens.
    """
    if task not in TASKS:
        raise UsageError(f"task={task!r} is not allowed: it is one of {', '.join(TASKS)}")
    if word not in (1, 2, 3) or (word > 1 and task in ("relevant", "context")):
        raise UsageError(f"word={word} is not allowed: words have 1 to 3 tokens, those of relevant and context a size of their own")
    least = {"reversal": 16, "cot": 16, "relevant": 32, "context": 20}[task]
    if vocabulary < least or vocabulary**word >= 2**31:
        raise UsageError(
            f"vocabulary={vocabulary} is not allowed: task {task} has at least {least} tokens and fewer than 2**31 words"
        )
    # in context: x, each with its answers
    if task == "context":
        x = vocabulary // 4
        return Sizes(x * (ANSWERS - HELD_OUT), x * HELD_OUT, x * (ANSWERS - HELD_OUT), x * HELD_OUT, 1, 7, vocabulary + 3)
    m = vocabulary // 4
    # pairs and triples
    train, validation = (vocabulary // 8, vocabulary // 16) if word == 3 else (7 * m // 10, m - 7 * m // 10)
    if task == "relevant":
        train, validation, word = 5 * vocabulary // 8, vocabulary // 16, 2
    each, known = (2, 1) if task == "reversal" else (3, 2)
    return Sizes(train, validation, each * train + known * validation, validation, word, 2 * word + 1, vocabulary + 2)


def owners(task: str, vocabulary: int, word: int = 1) -> Int[np.ndarray, " S"]:
    """The training fact that each sequence states; -1 for those of validation facts, whichever set they are in."""
    size = sizes(task, vocabulary, word)
    of_training = np.tile(np.arange(size.train_facts), {"reversal": 2, "context": 1}.get(task, 3))
    return np.concatenate([of_training, np.full(size.train + size.validation - len(of_training), -1)])


def same_kind(task: str, size: Sizes) -> slice:
    """Where the training sequences are that ask what the validation sequences ask, of facts that training states in full."""
    p = size.train_facts
    return {"reversal": slice(0, 2 * p), "context": slice(0, p)}.get(task, slice(2 * p, 3 * p))


def subset(key: PRNGKeyArray, total: int, m: int) -> Int[Array, " m"]:
    """Distinct numbers below ``total`` in random order, uniform over sets, in O(m^2) and without a list of them all (Floyd)."""
    k_new, k_order = jax.random.split(key)

    def add(i: Int[Array, ""], chosen: Int[Array, " m"]) -> Int[Array, " m"]:
        last = total - m + i
        new = jax.random.randint(jax.random.fold_in(k_new, i), (), 0, last + 1, jnp.int32)
        return chosen.at[i].set(jnp.where(jnp.any(chosen == new), last, new).astype(jnp.int32))

    return jax.random.permutation(k_order, jax.lax.fori_loop(0, m, add, jnp.full(m, -1, jnp.int32)))


def sample(key: PRNGKeyArray, task: str, vocabulary: int, word: int = 1) -> Facts:
    """The sequences of one run, in the order P x (each kind), T x (each known kind), T x (the held-out kind).

    Raises:
        UsageError: as :func:`sizes`.
    """
    size = sizes(task, vocabulary, word)
    k_words, k_side = jax.random.split(key)
    if task == "context":
        return _in_context(k_words, k_side, vocabulary)
    p, t = size.train_facts, size.validation_facts
    a, b, *c = words = _words(k_words, task, vocabulary, size)
    if task == "reversal":
        there, back = _sequences(a, vocabulary, b), _sequences(b, vocabulary + 1, a)
        forward = jax.random.bernoulli(k_side, 0.5, (t,))
        known, unseen = (jnp.where((forward == side)[:, None], there[p:], back[p:]) for side in (True, False))
        return Facts(jnp.concatenate([there[:p], back[:p], known, unseen]), words, forward)
    kinds = _sequences(a, vocabulary, b), _sequences(b, vocabulary, c[0]), _sequences(a, vocabulary + 1, c[0])
    parts = [kind[:p] for kind in kinds] + [kind[p:] for kind in kinds]
    return Facts(jnp.concatenate(parts), words, jnp.ones(t, bool))


def _words(key: PRNGKeyArray, task: str, vocabulary: int, size: Sizes) -> Int[Array, "r m k"]:
    """The names of all members: distinct random words; or a letter and a shared index token."""
    m, r = size.train_facts + size.validation_facts, 2 if task == "reversal" else 3
    if task == "relevant":
        tokens = subset(key, vocabulary, r + m)
        letters, index = jnp.broadcast_to(tokens[:r, None], (r, m)), jnp.broadcast_to(tokens[r:], (r, m))
        return jnp.stack([letters, index], -1)
    number = subset(key, vocabulary**size.word, r * m).reshape(r, m)
    return jnp.stack([number // vocabulary**j % vocabulary for j in range(size.word)], -1)


def _sequences(x: Int[Array, "m k"], relation: int, y: Int[Array, "m k"]) -> Int[Array, "m n"]:
    return jnp.concatenate([x, jnp.full_like(x[:, :1], relation), y], 1)


def _in_context(k_words: PRNGKeyArray, k_side: PRNGKeyArray, vocabulary: int) -> Facts:
    """Every x with each of the ten y, seven of them (its own) for training."""
    n = vocabulary // 4
    tokens = subset(k_words, vocabulary, n + ANSWERS)
    order = jax.random.permutation(k_side, jnp.broadcast_to(tokens[n:], (n, ANSWERS)), 1, independent=True)

    def sequences(y: Int[Array, "n c"]) -> Int[Array, "s 7"]:
        x = jnp.broadcast_to(tokens[:n, None], y.shape).ravel()
        there, equal, back = (jnp.full_like(x, vocabulary + i) for i in range(3))
        return jnp.stack([x, there, y.ravel(), equal, y.ravel(), back, x], 1)

    parts = [sequences(order[:, HELD_OUT:]), sequences(order[:, :HELD_OUT])]
    return Facts(jnp.concatenate(parts), tokens[:n][None, :, None], jnp.ones(n * HELD_OUT, bool))
