r"""One head of softmax attention over sequences whose tokens have fixed scores, and random sequences.

Only what gives the attention weights trains.

.. math:: L(p) = \frac1n\sum_i \ln\bigl(1 + e^{-m_i}\bigr), \qquad m_i = \sum_t a_{it}\gamma_{it}, \qquad
          a_i = \mathrm{softmax}(F_i p)

The features :math:`F_{it}` are the tokens :math:`x_{it}` themselves (p a vector), or :math:`\mathrm{vec}(x_{it} z_i^\top)` with
the sequence's query :math:`z_i` (p a matrix W, scores :math:`x_{it}^\top W z_i`).
Source: arXiv:2308.16898 and arXiv:2306.13596, section 2. Letters: n sequences, T tokens, D features.

Tokens and queries are Gaussian. Each sequence has one optimal token, of score 1; the others have the score ``other``, or scores
spread around it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train


class Data(NamedTuple):
    r"""Features of all tokens, and their scores :math:`\gamma` (the label times the value)."""

    features: Float[Array, "n T D"]
    scores: Float[Array, "n T"]


def loss(p: Float[Array, " D"], data: Data) -> Float[Array, ""]:
    """The logistic loss."""
    a = jax.nn.softmax(data.features @ p)
    return jnp.mean(jax.nn.softplus(-jnp.sum(a * data.scores, -1)))


def direction(p: Float[Array, " D"], data: Data) -> Float[Array, " D"]:
    r"""Minus the gradient of the loss over its norm, from differences that do not cancel.

    .. math:: -\nabla L \propto \sum_i \sigma(-m_i) \sum_t c_{it} F_{it}, \qquad
              c_{it} = \sum_s a_{it} a_{is} (\gamma_{it} - \gamma_{is})

    The naive form :math:`a \odot (\gamma - a\cdot\gamma)` is all rounding error once :math:`1 - a < 10^{-16}`. Here the products of
    weights are taken in logarithms, minus the largest one over all sequences, which cancels in the norm.
    """
    log_a = jax.nn.log_softmax(data.features @ p)
    gap = data.scores[:, :, None] - data.scores[:, None]
    pairs = jnp.where(gap != 0, log_a[:, :, None] + log_a[:, None], -jnp.inf)
    c = jnp.sum(jnp.exp(pairs - jnp.max(pairs)) * gap, -1)
    pull = jax.nn.sigmoid(-jnp.sum(jnp.exp(log_a) * data.scores, -1))
    total = jnp.einsum("n,nt,ntd->d", pull, c, data.features)
    return total / jnp.linalg.norm(total)


def step(p: Float[Array, " D"], data: Data, size: float | Float[Array, ""]) -> Float[Array, " D"]:
    """A step of normalised gradient descent."""
    return train.learned(p, p + size * direction(p, data))


@runtime_checkable
class Sequences(Protocol):
    """The fields of a setting that say how sequences are sampled."""

    @property
    def other(self) -> Any:
        """Score of the tokens that are not optimal."""

    @property
    def spread(self) -> Any:
        """Half the width of the range of their scores around it."""

    @property
    def reversed(self) -> Any:
        """Whether the theory does not know the optimal token of the first sequence."""

    @property
    def blended(self) -> Any:
        """Whether the optimal token of the first sequence is the mean of the others."""

    @property
    def sequences(self) -> int:
        """Number of sequences."""

    @property
    def shown(self) -> int:
        """Tokens of a sequence."""

    @property
    def inputs(self) -> int:
        """Entries of a token."""


def check(s: Any) -> None:
    """Refuse scores that are above the optimal one, and switches between 0 and 1.

    Raises:
        UsageError: a field with a value that is not allowed.
    """
    jd.require(s, s.other + s.spread < 1, "other + spread is below 1", "other", "spread")
    for name in ("reversed", "blended"):
        jd.require(s, getattr(s, name) in (0, 1), f"{name} is 0 or 1", name)


def sample(s: Sequences, key: PRNGKeyArray, matrix: bool | Bool[Array, ""]) -> tuple[Data, Int[Array, " n"]]:
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
    return Data(jnp.einsum("nti,nj->ntij", x, z).reshape(n, t, d * d), scores), best
