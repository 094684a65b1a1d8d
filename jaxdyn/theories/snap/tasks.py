r"""The classes that the network of ``model.py`` learns at infinite length; sampled sequences use ``data/classes.py``.

Every class has tokens of its own (distinct), shares common ones, and has a query and a next token outside of its contexts.
Letters as in ``model.py``; D distinct tokens per class, C common tokens.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn.errors import require
from jaxdyn.theories.snap.model import Task

Scalar = float | Float[Array, ""]


def check(setting: Any) -> None:
    """Refuse a setting whose vocabulary is too small for :func:`random_task`, or whose ``weights`` are impossible.

    Args:
        setting: with the fields ``tokens``, ``classes``, ``distinct``, ``weights``, and perhaps ``queries``.

    Raises:
        UsageError: with the least vocabulary, or the allowed weights.
    """
    least = 1 + setting.classes * (setting.distinct + 1) + getattr(setting, "queries", setting.classes)
    require(setting, setting.tokens >= least, f"tokens is at least {least} for these classes", "tokens")
    check_weights(setting)


def check_weights(setting: Any) -> None:
    """Refuse ``weights`` of distinct tokens that are not ``distinct`` positive numbers.

    Raises:
        UsageError: with the allowed number.
    """
    given = setting.weights
    allowed = given is None or (len(given) == setting.distinct and min(given) > 0)
    require(setting, allowed, f"weights is none or {setting.distinct} positive numbers", "weights")


def random_task(
    key: PRNGKeyArray,
    tokens: int,
    classes: int,
    distinct: int,
    common: Scalar,
    skew: Scalar = 0.0,
    queries: int | None = None,
    weights: tuple[float, ...] | None = None,
) -> Task:
    """Classes with random probabilities of their distinct tokens, and token 0 in common.

    The vocabulary: the common token, the classes' distinct tokens block by block, queries, next tokens, and tokens never used.

    Args:
        key: of the weights of the distinct tokens.
        tokens: M.
        classes: K.
        distinct: D.
        common: probability of the common token in every class.
        skew: the frequency of class n is proportional to 1 + skew n.
        queries: R; class n has query n modulo R (its own by default).
        weights: of the distinct tokens of every class, in place of random ones.
    """
    # weights of the distinct tokens
    queries = classes if queries is None else queries
    own = 0.5 + jax.random.uniform(key, (classes, distinct), jnp.float64)
    if weights is not None:
        own = jnp.broadcast_to(jnp.asarray(weights, jnp.float64), own.shape)
    own = (1 - common) * own / jnp.sum(own, 1, keepdims=True)
    # laws over the whole vocabulary
    blocks = jnp.einsum("nd,nk->nkd", own, jnp.eye(classes, dtype=jnp.float64)).reshape(classes, -1)
    rest = jnp.zeros((classes, tokens - 1 - classes * distinct), jnp.float64)
    p = jnp.concatenate([jnp.broadcast_to(jnp.asarray(common, jnp.float64), (classes, 1)), blocks, rest], 1)
    # queries, next tokens and frequencies
    n = np.arange(classes)
    frequency = 1 + skew * jnp.asarray(n, jnp.float64)
    return Task(p, n % queries, 1 + classes * distinct + queries + n, frequency / jnp.sum(frequency))


def weighted_task(weights: Float[Array, "K D"], commons: Float[Array, " C"]) -> Task:
    """Equally frequent classes from weights of their tokens: common ones, blocks of distinct ones, K queries, K next tokens."""
    count, each = weights.shape
    place = len(commons) + np.arange(count * each).reshape(count, each)
    size = len(commons) + count * (each + 2)
    p = jnp.zeros((count, size), jnp.float64).at[np.arange(count)[:, None], place].set(weights)
    p = p.at[:, : len(commons)].set(commons)
    numbers = jnp.arange(count, dtype=jnp.int32)
    return Task(p / jnp.sum(p, -1, keepdims=True), numbers, size - count + numbers, jnp.full(count, 1 / count, jnp.float64))
