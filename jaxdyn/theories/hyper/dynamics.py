r"""Contrastive losses of codes and of linear encoders on the hypercube: closed forms, minima and gradient flow.

Contrastive losses of codes that map both views of a point to one unit vector, in closed form.

With T the temperature, n negatives, and :math:`c = E[e^{z \cdot z'/T}]` over independent points,

.. math:: L(n, c) = \ln(n c + e^{1/T}) - 1/T

up to Jensen's inequality: pairs of views repeat every similarity, so that the loss of a batch is lower by about
:math:`2 n \operatorname{Var}(e^{s/T}) / 2 (n c + e^{1/T})^2`.
Source: ours (background of arXiv:2202.14037, which has losses measured). Letters: k relevant bits, d dimensions, M codewords.

The spectral contrastive loss of linear encoders on the hypercube: its minimum, and its gradient flow from an aligned start.

.. math:: L(W) = -2 \operatorname{tr} W C_+ W^\top + \operatorname{tr} (W C W^\top)^2, \qquad C_+ = \operatorname{diag}(1_k,
   (E\tau)^2 1), \quad C = \operatorname{diag}(1_k, E\tau^2\, 1)

Whitened, the relevant bits have eigenvalue 1, all others :math:`\mu = (E\tau)^2 / E\tau^2 < 1`: with d <= k dimensions, only
relevant bits are used. In a coordinate with which one row of W is aligned, :math:`p = w^2` obeys the logistic
:math:`\dot p = 8 (c_+ p - c^2 p^2)`.
Source: arXiv:2202.14037, analysis of the spectral loss; minimum and path derived. Letters: d dimensions, D coordinates, k relevant.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

TERMS = 80  # of the series of the sphere; enough for T >= 0.05


def loss(negatives: Any, moment: Any, temperature: Any) -> Float[Array, ""]:
    """The loss of an invariant code with this moment c."""
    return jnp.log(negatives * moment + jnp.exp(1 / temperature)) - 1 / temperature


def jensen(negatives: Any, moment: Any, variance: Any, temperature: Any) -> Float[Array, ""]:
    """What the mean of the logarithm lies below the logarithm of the mean, to leading order."""
    return negatives * variance / (negatives * moment + jnp.exp(1 / temperature)) ** 2


def bit_moment(bits: Any, temperature: Any) -> Float[Array, ""]:
    r"""C of the code :math:`x_{1:k}/\sqrt k`, whose coordinates are independent signs: :math:`\cosh(1/Tk)^k`."""
    return jnp.cosh(1 / (temperature * bits)) ** bits


def bit_variance(bits: Any, temperature: Any) -> Float[Array, ""]:
    """The variance of exp(s/T) for the same code."""
    return bit_moment(bits, temperature / 2) - bit_moment(bits, temperature) ** 2


def sphere_moment(dims: Any, temperature: Any) -> Float[Array, ""]:
    r"""C of the uniform law on the unit sphere of d dimensions, the least that any code there has.

    .. math:: c = \Gamma(d/2)\,(2T)^{d/2-1} I_{d/2-1}(1/T) = \sum_m \frac{\Gamma(d/2)}{m!\,\Gamma(m + d/2)} (2T)^{-2m}
    """
    m = jnp.arange(TERMS, dtype=jnp.float64)
    half = jnp.asarray(dims, jnp.float64) / 2
    log_term = jax.lax.lgamma(half) - jax.lax.lgamma(m + 1) - jax.lax.lgamma(m + half) - 2 * m * jnp.log(2 * temperature)
    return jnp.sum(jnp.exp(log_term))


def simplex_moment(words: Any, temperature: Any) -> Float[Array, ""]:
    """C of a regular simplex with M codewords, equally often."""
    return (jnp.exp(1 / temperature) + (words - 1) * jnp.exp(-1 / (temperature * (words - 1)))) / words


def one_hot_moment(words: Any, temperature: Any) -> Float[Array, ""]:
    """C of M orthogonal codewords, equally often; 1 for infinitely many."""
    return (jnp.exp(1 / temperature) + words - 1) / words


def critical(bits: Any, temperature: Any, mean: Any = 0.5, second: Any = 1 / 3) -> Float[Array, ""]:
    r"""What a linear encoder gains from a little weight on irrelevant bits, in units in which its sign alone matters.

    A representation with energy e per relevant energy in irrelevant bits, :math:`z \propto (x_{1:k}, \sqrt{e}\, \tau u)`, has to
    first order in e positives with similarity :math:`1 - e \operatorname{Var} \tau` and negatives with similarity
    :math:`s (1 - e\, E\tau^2)`, so that its loss changes in proportion to

    .. math:: \operatorname{Var} \tau - E\tau^2 \tanh(1/Tk)

    Returned is :math:`\tanh(1/Tk) - 1 + \mu`, :math:`\mu = (E\tau)^2/E\tau^2`: positive where irrelevant bits help. Source:
    derived.
    """
    return jnp.tanh(1 / (temperature * bits)) - 1 + mean**2 / second


def correlations(dims: int, relevant: Any, mean: Any, second: Any) -> tuple[Float[Array, " D"], Float[Array, " D"]]:
    """The diagonals of C+ and C for factors with this mean and second moment."""
    kept = jnp.arange(dims) < relevant
    return jnp.where(kept, 1.0, mean**2).astype(jnp.float64), jnp.where(kept, 1.0, second).astype(jnp.float64)


def minimum(dims: int, relevant: Any, encoder: Any, mean: Any, second: Any) -> Float[Array, ""]:
    r"""The least loss of d dimensions, :math:`-\min(d, k) - \mu^2 \max(\min(d, D) - k, 0)`."""
    mu = mean**2 / second
    return -jnp.minimum(encoder, relevant) - mu**2 * jnp.maximum(jnp.minimum(encoder, dims) - relevant, 0.0)


def logistic(start: Float[Array, "..."], plus: Any, both: Any, ts: Float[Array, " T"]) -> Float[Array, "T ..."]:
    r"""p(t) of aligned coordinates: :math:`K/(1 + (K/p_0 - 1) e^{-8 c_+ t})` with :math:`K = c_+/c^2`."""
    limit = plus / both**2
    return limit / (1 + (limit / start - 1) * jnp.exp(-8 * plus * ts[(...,) + (None,) * jnp.ndim(start)]))
