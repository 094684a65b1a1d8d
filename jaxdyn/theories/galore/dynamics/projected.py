r"""Gradient descent within fixed subspaces: :math:`W \leftarrow W + \eta P R Q^\top`, :math:`R = P^\top G Q`.

.. math:: \mathrm{vec}\, R_t = (I - \eta \hat S)^t\, \mathrm{vec}\, R_0, \quad \|R_t\|_F \le (1 - \eta\kappa) \|R_{t-1}\|_F, \quad
   \kappa = \frac1N \sum_i \lambda_{min}(\hat B_i) \lambda_{min}(\hat C_i) \le \lambda_{min}(\hat S)

with :math:`\hat B = P^\top B P`, :math:`\hat C = Q^\top C Q`. R vanishes, G does not: it ends at
:math:`G_0 - S[P X Q^\top]`, :math:`\hat S X = R_0`. Source: arXiv:2403.03507, theorem 3.8, with the condition
:math:`\eta \le 2 / (\kappa + \lambda_{max}(\hat S))` that the factor needs; where G ends: derived.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import linalg
from jaxdyn.theories.galore.dynamics.decay import operator


class Within(NamedTuple):
    """What the theory says of descent within P and Q: the bound's rate, the extreme eigenvalues, and where the gradient ends."""

    kappa: Float[Array, ""]
    slowest: Float[Array, ""]
    fastest: Float[Array, ""]
    rest: Float[Array, "m n"]


def within(
    b: Float[Array, "N m m"], c: Float[Array, "N n n"], g: Float[Array, "m n"], p: Float[Array, "m r"], q: Float[Array, "n s"]
) -> Within:
    """The predictions from the gradient at the start."""
    small_b, small_c = jnp.einsum("mr,imk,ks->irs", p, b, p), jnp.einsum("mr,imk,ks->irs", q, c, q)
    values, vectors = linalg.eigh(operator(small_b, small_c))
    r = (p.T @ g @ q).ravel()
    x = (vectors @ ((vectors.T @ r) / values)).reshape(p.shape[1], q.shape[1])
    rest = g - jnp.einsum("imk,kl,iln->mn", b, p @ x @ q.T, c) / b.shape[0]
    kappa = jnp.mean(linalg.eigvalsh(small_b)[:, 0] * linalg.eigvalsh(small_c)[:, 0])
    return Within(kappa, values[0], values[-1], rest)
