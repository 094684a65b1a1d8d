r"""Singular values of a rolling window of updates, from their Gram matrix, and the first window in which a curve is high.

.. math:: G_{ij} = \langle \Delta W_i, \Delta W_j \rangle, \qquad
    \sigma_k(t)^2 = \lambda_k\bigl(G_{t-T+1 \ldots t,\; t-T+1 \ldots t}\bigr)

All windows are diagonal blocks of one Gram matrix, so that the weights are gone through once.
Source: arXiv:2605.08119, whose sigma are the eigenvalues of the Gram matrix; here they are the singular values, the roots of these.
Letters: R updates of P weights, T updates a window, w = R - T + 1 windows.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Real

from jaxdyn import linalg


def values(updates: Float[Array, "R P"], window: int) -> Float[Array, "w T"]:
    """Singular values of every window, the largest first."""
    wide = updates.astype(jnp.float64)
    gram = wide @ wide.T
    rows = jnp.arange(len(updates) - window + 1)[:, None] + jnp.arange(window)
    squares = linalg.eigvalsh(gram[rows[:, :, None], rows[:, None, :]])[:, ::-1]
    return jnp.sqrt(jnp.maximum(squares, 0))


def first(high: Bool[np.ndarray, "*b w"], at: Real[np.ndarray, " w"]) -> Float[np.ndarray, "*b"]:
    """The epoch ``at`` which flags are first true along the last axis; infinity if they never are."""
    return np.where(high.any(-1), np.asarray(at, float)[high.argmax(-1)], np.inf)
