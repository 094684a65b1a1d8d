r"""The spectral contrastive loss of linear encoders on the hypercube: its minimum, and its gradient flow from an aligned start.

.. math:: L(W) = -2 \operatorname{tr} W C_+ W^\top + \operatorname{tr} (W C W^\top)^2, \qquad C_+ = \operatorname{diag}(1_k,
   (E\tau)^2 1), \quad C = \operatorname{diag}(1_k, E\tau^2\, 1)

Whitened, the relevant bits have eigenvalue 1, all others :math:`\mu = (E\tau)^2 / E\tau^2 < 1`: with d <= k dimensions, only
relevant bits are used. In a coordinate with which one row of W is aligned, :math:`p = w^2` obeys the logistic
:math:`\dot p = 8 (c_+ p - c^2 p^2)`.
Source: arXiv:2202.14037, analysis of the spectral loss; minimum and path derived. Letters: d dimensions, D coordinates, k relevant.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float


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
