r"""The loss of gradient flow on a linear model with a power-law spectrum, its limits and the best use of compute :math:`C = Nt`.

.. math:: L(N, t) = \sum_{j \le N} j^{-q} e^{-2 j^{-p} t} + \sum_{j > N} j^{-q}

.. math:: L(N, \infty) \to \frac{N^{-(q-1)}}{q-1}, \qquad L(\infty, t) \to \frac1p\, \Gamma\Bigl(\frac{q-1}p\Bigr) (2t)^{-(q-1)/p},
   \qquad N^* \propto C^{1/(1+p)}

The law has the form :math:`N^{-(q-1)}\, \Phi(t/N^p)`, which is not a sum of a power of N and one of t.
Source: derived; the model is that of arXiv:2402.01092 (Bordelon, Atanasov, Pehlevan) without its noise.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax.scipy.special import gammaln, zeta
from jaxtyping import Array, Float, Int

MOST = 2048  # features of the largest model


def loss(sizes: Int[Array, " s"], time: Any, p: Any, q: Any, rate: float = 0.0) -> Float[Array, " s"]:
    r"""The losses of the models of the first N features at a time, for N in ``sizes``.

    With a ``rate`` they are those of gradient descent after t/rate steps, :math:`(1 - \eta\lambda)^{2t/\eta}` in place of
    :math:`e^{-2\lambda t}`.
    """
    j = jnp.arange(1, MOST + 1, dtype=jnp.float64)
    decay = jnp.exp(-2 * time * (-jnp.log1p(-rate * j**-p) / rate if rate else j**-p))
    return jnp.cumsum(j**-q * decay)[sizes - 1] + zeta(q, sizes + 1.0)


def late(count: Any, q: Any) -> Any:
    """The loss of many features after endless training."""
    return count ** (1 - q) / (q - 1)


def large(time: Any, p: Any, q: Any) -> Any:
    """The loss of endlessly many features after a long time."""
    power = (q - 1) / p
    return jnp.exp(gammaln(power)) / p * (2 * time) ** -power


def exponent(p: Any) -> Any:
    """The exponent of the best number of features in the budget."""
    return 1 / (1 + p)
