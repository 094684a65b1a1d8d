r"""A linear model whose features have a power-law spectrum, trained by gradient descent on its population loss.

.. math:: L(w) = \sum_{j \le N} \lambda_j (w_j - w_j^*)^2 + \sum_{j > N} \lambda_j (w_j^*)^2, \qquad
   \lambda_j = j^{-p} e^{-cj}, \quad \lambda_j (w_j^*)^2 = j^{-q}

Its features are uncorrelated, so that the model of the first N of them is a part of the largest one: each weight's path is the same
in all.
With c > 0 the spectrum is no power law. Letters: j features, N of them in a model, t time = rate times steps.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax.scipy.special import zeta
from jaxtyping import Array, Float


def spectrum(count: int, p: Any, cut: Any = 0.0) -> Float[Array, " j"]:
    """Eigenvalues of the features' covariance."""
    j = jnp.arange(1, count + 1, dtype=jnp.float64)
    return j**-p * jnp.exp(-cut * j)


def target(eigenvalues: Float[Array, " j"], q: Any) -> Float[Array, " j"]:
    """Weights of the target: what a feature explains falls as its number to the power -q."""
    j = jnp.arange(1, eigenvalues.size + 1, dtype=jnp.float64)
    return jnp.sqrt(j**-q / eigenvalues)


def loss(w: Float[Array, " j"], eigenvalues: Float[Array, " j"], goal: Float[Array, " j"]) -> Float[Array, ""]:
    """Half of the population's mean square error that the features can explain; its gradient is the error of each weight's path."""
    return 0.5 * jnp.sum(eigenvalues * (w - goal) ** 2)


def losses(w: Float[Array, " j"], eigenvalues: Float[Array, " j"], goal: Float[Array, " j"], q: Any) -> Float[Array, " j"]:
    """Mean square errors of the models of the first 1, 2, ... features, with all that no feature of theirs explains."""
    count = jnp.arange(1, w.size + 1, dtype=jnp.float64)
    return jnp.cumsum(eigenvalues * (w - goal) ** 2) + zeta(q, count + 1)
