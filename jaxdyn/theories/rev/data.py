r"""Sequences of three tokens, entity relation entity: the reversal task and the chain-of-thought task.

Reversal: entities :math:`A_i, B_i`, sequences :math:`A_i \to B_i` and :math:`B_i \leftarrow A_i`. Training holds both of a
training index and exactly one of a test index; the other one is the test. Chain of thought ("cot"): :math:`A_i \to B_i`,
:math:`B_i \to C_i` (direct) and :math:`A_i \leadsto C_i` (indirect). Training holds all three of a training index and the direct
two of a test index; the indirect one is the test.

Source: arXiv:2405.04669, sections 2 and 4. Letters: P training indices, T test indices, N training sequences, M tokens (entities,
two relations, and unused ones), in random places.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn.errors import UsageError

TASKS = ("reversal", "cot")


class Facts(NamedTuple):
    """Training sequences (those of test indices last), the test sequences, and the relation that links a chain's steps."""

    train: Int[Array, "N 3"]
    test: Int[Array, "T 3"]
    arrow: Int[Array, ""]


def needed(task: str, train_indices: int, test_indices: int) -> int:
    """How many tokens a task uses.

    Raises:
        UsageError: unknown task.
    """
    if task not in TASKS:
        raise UsageError(f"task={task!r} is not allowed: it is one of {', '.join(TASKS)}")
    return (2 if task == "reversal" else 3) * (train_indices + test_indices) + 2


def sample(key: PRNGKeyArray, task: str, vocabulary: int, train_indices: int, test_indices: int) -> Facts:
    """The sequences of one run.

    Order of training: reversal ``P x (A -> B), P x (B <- A), T x (one of the two)``; chain of thought ``P x (A -> B),
    P x (B -> C), P x (A ~> C), T x (A -> B), T x (B -> C)``. The test sequences follow the order of the test indices.

    Raises:
        UsageError: unknown task.
    """
    p, t = train_indices, test_indices
    k_place, k_side = jax.random.split(key)
    # random places for relations and entities
    tokens = jax.random.permutation(k_place, vocabulary)[: needed(task, p, t)].astype(jnp.int32)
    first, second = tokens[0], tokens[1]
    entity = tokens[2:].reshape(-1, p + t)

    def sequence(x: Int[Array, " n"], relation: Int[Array, ""], y: Int[Array, " n"]) -> Int[Array, "n 3"]:
        return jnp.stack([x, jnp.full_like(x, relation), y], -1)

    # training and test sequences
    a, b = entity[0], entity[1]
    if task == "reversal":
        forward, backward = sequence(a, first, b), sequence(b, second, a)
        side = jax.random.bernoulli(k_side, 0.5, (t, 1))
        known = jnp.where(side, forward[p:], backward[p:])
        return Facts(jnp.concatenate([forward[:p], backward[:p], known]), jnp.where(side, backward[p:], forward[p:]), first)
    one, two, both = sequence(a, first, b), sequence(b, first, entity[2]), sequence(a, second, entity[2])
    return Facts(jnp.concatenate([one[:p], two[:p], both[:p], one[p:], two[p:]]), both[p:], first)


def single(task: str, train_indices: int, test_indices: int) -> Int[np.ndarray, " n"]:
    """Training sequences whose first token begins no other one: all except the two that begin with A of a training triple."""
    p, t = train_indices, test_indices
    return np.arange(2 * p + t) if task == "reversal" else np.concatenate([np.arange(p, 2 * p), np.arange(3 * p, 3 * p + 2 * t)])


def of_test(task: str, train_indices: int, test_indices: int) -> Bool[np.ndarray, " n"]:
    """Which of the :func:`single` sequences belong to test indices."""
    n = len(single(task, train_indices, test_indices))
    return np.arange(n) >= n - (1 if task == "reversal" else 2) * test_indices


def indirect(task: str, train_indices: int, test_indices: int) -> Bool[np.ndarray, " N"]:
    """Which training sequences are indirect ones (none in the reversal task)."""
    p, t = train_indices, test_indices
    place = np.arange(2 * p + t if task == "reversal" else 3 * p + 2 * t)
    return (task == "cot") & (place >= 2 * p) & (place < 3 * p)


def owners(task: str, train_indices: int, test_indices: int) -> Int[np.ndarray, " N"]:
    """The training index that each training sequence belongs to; -1 for sequences of test indices."""
    p, t = train_indices, test_indices
    kinds, known = (2, 1) if task == "reversal" else (3, 2)
    return np.concatenate([np.tile(np.arange(p), kinds), np.full(known * t, -1)])


def shares(facts: Facts, leak: Float[Array, ""], weights: Float[Array, " N"]) -> tuple:
    """All sequences, test ones last, and their shares among sampled ones.

    Args:
        facts: the sequences.
        leak: weight of a test sequence; 0 keeps tests out of training.
        weights: of the training sequences; 0 for those that are not shown.
    """
    weights = jnp.concatenate([weights, jnp.full(len(facts.test), leak)])
    return jnp.concatenate([facts.train, facts.test]), weights / jnp.sum(weights)
