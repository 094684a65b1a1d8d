r"""One head of softmax attention over sequences whose tokens have fixed scores; only what gives the attention weights trains.

.. math:: L(p) = \frac1n\sum_i \ln\bigl(1 + e^{-m_i}\bigr), \qquad m_i = \sum_t a_{it}\gamma_{it}, \qquad
          a_i = \mathrm{softmax}(F_i p)

The features :math:`F_{it}` are the tokens :math:`x_{it}` themselves (p a vector), or :math:`\mathrm{vec}(x_{it} z_i^\top)` with
the sequence's query :math:`z_i` (p a matrix W, scores :math:`x_{it}^\top W z_i`).
Source: arXiv:2308.16898 and arXiv:2306.13596, section 2. Letters: n sequences, T tokens, D features.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
