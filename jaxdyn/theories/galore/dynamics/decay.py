r"""Gradients of a quadratic under gradient descent, and bounds on their stable rank.

.. math:: \mathrm{vec}\, G_t = (I - \eta S)^t\, \mathrm{vec}\, G_0, \qquad S = \frac1N \sum_i C_i \otimes B_i

With :math:`G_\parallel` the part in the lowest eigenspace, :math:`\rho = (1 - \eta\lambda_2) / (1 - \eta\lambda_1)` and
:math:`\delta_t = \rho^t \|G_0 - G_\parallel\|_F`:

.. math:: \mathrm{sr}(G_t) \le \mathrm{sr}(G_\parallel) + \frac{\delta_t^2}{\|G_\parallel\|_2^2} \ (\text{printed}), \qquad
   \mathrm{sr}(G_t) \le \frac{\|G_\parallel\|_F^2 + \delta_t^2}{(\|G_\parallel\|_2 - \delta_t)^2} \ (\text{corrected, for }
   \delta_t < \|G_\parallel\|_2)

Source: arXiv:2403.03507, lemma 3.4 (printed); corrected: derived, from :math:`\|G_t\|_2 \ge \|G_{\parallel,t}\|_2 - \|G_t -
G_{\parallel,t}\|_F`. Both need :math:`\eta \le 2 / (\lambda_2 + \lambda_{max})`, which the paper does not state: beyond it another
eigenvalue decays last.
Letters: b (N, m, m), c (N, n, n) symmetric and positive semidefinite; g (m, n).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Real

from jaxdyn import linalg, metrics

TIE = 1e-9  # eigenvalues this close, relative to the largest, are one


class Modes(NamedTuple):
    """Eigenvalues of S in ascending order, and its eigenvectors as matrices."""

    values: Float[Array, " k"]
    matrices: Float[Array, "k m n"]


def operator(b: Float[Array, "N m m"], c: Float[Array, "N n n"]) -> Float[Array, "mn mn"]:
    """S on row-major vectors: the mean of B ⊗ C."""
    m, n = b.shape[-1], c.shape[-1]
    return (jnp.einsum("iab,icd->acbd", b, c) / b.shape[0]).reshape(m * n, m * n)


def modes(b: Float[Array, "N m m"], c: Float[Array, "N n n"]) -> Modes:
    """The eigenvalues and eigenvectors of S."""
    values, vectors = linalg.eigh(operator(b, c))
    return Modes(values, vectors.T.reshape(-1, b.shape[-1], c.shape[-1]))


def lowest(s: Modes, g: Float[Array, "m n"], within: float = TIE) -> tuple[Float[Array, "m n"], Float[Array, ""], Float[Array, ""]]:
    """The part of g in the lowest eigenspace, that space's eigenvalue, and the next one."""
    first = s.values <= s.values[0] + within * s.values[-1]
    amounts = jnp.einsum("kmn,mn->k", s.matrices, g)
    second = jnp.min(jnp.where(first, jnp.inf, s.values))
    return jnp.einsum("k,kmn->mn", jnp.where(first, amounts, 0), s.matrices), s.values[0], second


def largest_step(s: Modes, second: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""The step sizes :math:`2 / (\lambda_2 + \lambda_{max})`, up to which the lemma holds, and :math:`2 / \lambda_{max}`."""
    return 2 / (second + s.values[-1]), 2 / s.values[-1]


def ratio(eta: float | Float[Array, ""], first: Float[Array, ""], second: Float[Array, ""]) -> Float[Array, ""]:
    r""":math:`\rho`, by which all else decays faster than the lowest part, in every step."""
    return (1 - eta * second) / (1 - eta * first)


def gradients(s: Modes, g: Float[Array, "m n"], eta: float | Float[Array, ""], steps: Real[Array, " t"]) -> Float[Array, "t m n"]:
    """The gradient after each number of steps."""
    amounts = jnp.einsum("kmn,mn->k", s.matrices, g)
    factors = (1 - eta * s.values) ** steps[:, None].astype(g.dtype)
    return jnp.einsum("tk,k,kmn->tmn", factors, amounts, s.matrices)


class Bounds(NamedTuple):
    """Bounds on stable ranks, and what the corrected one is made of, in units of the lowest part's spectral norm."""

    printed: Float[Array, " t"]
    corrected: Float[Array, " t"]
    delta: Float[Array, " t"]  # on the Frobenius norm of the rest
    square: Float[Array, " t"]  # on the squared Frobenius norm of all


def bounds(s: Modes, g: Float[Array, "m n"], eta: float | Float[Array, ""], steps: Real[Array, " t"]) -> Bounds:
    """All bounds; where the corrected one says nothing it is the smaller side, which no stable rank exceeds."""
    kept, first, second = lowest(s, g)
    spectral, frobenius = linalg.singular_values(kept)[0], jnp.linalg.norm(kept)
    delta = ratio(eta, first, second) ** steps.astype(g.dtype) * jnp.linalg.norm(g - kept)
    printed = metrics.stable_rank(kept) + jnp.square(delta / spectral)
    gap = jnp.where(delta < spectral, spectral - delta, 1)
    square = jnp.square(frobenius) + jnp.square(delta)
    corrected = jnp.where(delta < spectral, jnp.minimum(square / jnp.square(gap), min(g.shape)), min(g.shape))
    return Bounds(printed, corrected, delta / spectral, square / jnp.square(spectral))
