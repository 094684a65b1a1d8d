r"""Spectra of matrices: energies in falling order, stable ranks, the share that a rank keeps, and what random matrices have.

.. math:: \sigma_1^2 \ge \sigma_2^2 \ge \dots, \qquad \text{stable rank} = \sum_i \sigma_i^2 / \sigma_1^2, \qquad
   \text{share}(r) = \sum_{i \le r} \sigma_i^2 \Big/ \sum_i \sigma_i^2

A Gaussian matrix with m rows and M columns, :math:`m \le M`, has the law of Marchenko and Pastur: with :math:`c = m/M` energies
over their mean lie between :math:`(1 - \sqrt c)^2` and :math:`(1 + \sqrt c)^2`.

Source: Marchenko and Pastur 1967; Rudelson and Vershynin, arXiv:math/0503442 (stable rank).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn import linalg

__all__ = ["energies", "gaussian_share", "gaussian_stable_rank", "share", "stable_ranks"]

GRID = 20_001  # points of the law


def energies(w: Float[Array, "*rest r c"]) -> Float[Array, "*rest m"]:
    """Squares of the singular values in falling order, from the smaller Gram matrix: exact to the rounding of the largest one."""
    wide = w.astype(jnp.promote_types(w.dtype, jnp.float32))
    turned = jnp.swapaxes(wide, -1, -2)
    gram = wide @ turned if w.shape[-2] <= w.shape[-1] else turned @ wide
    return jnp.maximum(jnp.flip(linalg.eigvalsh(gram), -1), 0)


def stable_ranks(energy: Float[Array, "*rest m"]) -> Float[Array, " *rest"]:
    """The sum over the largest; NaN for zeros."""
    return jnp.sum(energy, -1) / energy[..., 0]


def share(energy: Float[Array, "*rest m"], rank: int) -> Float[Array, " *rest"]:
    """Share of the energy in the first so many singular values."""
    return jnp.sum(energy[..., :rank], -1) / jnp.sum(energy, -1)


def gaussian_stable_rank(rows: int, columns: int) -> float:
    r"""Of a large Gaussian matrix, :math:`r c / (\sqrt r + \sqrt c)^2`."""
    return rows * columns / (rows**0.5 + columns**0.5) ** 2


def gaussian_share(rows: int, columns: int, rank: float) -> float:
    """Share of a large Gaussian matrix' energy in its first so many singular values."""
    small, large = sorted((rows, columns))
    c = small / large
    angle = (np.arange(GRID) + 0.5) * np.pi / GRID  # at its ends the law has roots: in this angle it is smooth
    value = 1 + c - 2 * c**0.5 * np.cos(angle)
    weight = np.sin(angle) ** 2 / value
    count = np.cumsum(weight[::-1]) / weight.sum() * small
    energy = np.cumsum((weight * value)[::-1]) / (weight * value).sum()
    return float(np.interp(rank, np.concatenate([[0], count]), np.concatenate([[0], energy])))
