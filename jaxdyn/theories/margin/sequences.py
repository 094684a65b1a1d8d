"""Random sequences for the selection of tokens, and the checks of their settings.

Tokens and queries are Gaussian. Each sequence has one optimal token, of score 1; the others have the score ``other``, or scores
spread around it.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.margin import model


@runtime_checkable
class Sequences(Protocol):
    """The fields of a setting that say how sequences are sampled."""

    other: Any
    spread: Any
    reversed: Any
    blended: Any
    sequences: int
    shown: int
    inputs: int


def check(s: Any) -> None:
    """Refuse scores that are above the optimal one, and switches between 0 and 1.

    Raises:
        UsageError: a field with a value that is not allowed.
    """
    jd.require(s, s.other + s.spread < 1, "other + spread is below 1", "other", "spread")
    for name in ("reversed", "blended"):
        jd.require(s, getattr(s, name) in (0, 1), f"{name} is 0 or 1", name)


def sample(s: Sequences, key: PRNGKeyArray, matrix: bool | Bool[Array, ""]) -> tuple[model.Data, Int[Array, " n"]]:
    """Features (of a matrix, or of a vector in its first column) and scores, and the optimal tokens as the theory knows them."""
    k_x, k_z, k_best, k_score = jax.random.split(key, 4)
    n, t, d = s.sequences, s.shown, s.inputs
    x = jax.random.normal(k_x, (n, t, d), jnp.float64)
    z = jax.random.normal(k_z, (n, d), jnp.float64)
    best = jax.random.randint(k_best, (n,), 0, t)
    first = jnp.arange(n) == 0
    mark = jax.nn.one_hot(best, t, dtype=jnp.float64)
    mean = jnp.sum((1 - mark)[..., None] * x, 1) / (t - 1)
    blend = (s.blended * first[:, None] * mark)[..., None]
    x = x * (1 - blend) + blend * mean[:, None]
    z = jnp.where(matrix, z, jnp.eye(d)[0])  # a query of its own, or none
    scores = s.other + s.spread * jax.random.uniform(k_score, (n, t), jnp.float64, -1.0, 1.0)
    actual = jnp.where(first & (s.reversed == 1), (best + 1) % t, best)
    scores = jnp.where(jax.nn.one_hot(actual, t) == 1, 1.0, scores)
    return model.Data(jnp.einsum("nti,nj->ntij", x, z).reshape(n, t, d * d), scores), best
