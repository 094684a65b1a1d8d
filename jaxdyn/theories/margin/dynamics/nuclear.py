r"""The matrix of least nuclear norm that separates the optimal token of every sequence from the others.

.. math:: W_\star = \arg\min \|W\|_* \quad\text{with}\quad \langle A_c, W \rangle \ge 1 \quad\text{for all } c, \qquad
          \max_{b \ge 0}\ \textstyle\sum_c b_c \quad\text{with}\quad \|M\|_{op} \le 1,\ M = \sum_c b_c A_c

Solved in the dual by a barrier method: at every t, Newton's method minimises :math:`-t\sum b - \ln\det Z - \sum\ln b` with
:math:`Z = \begin{pmatrix} 1 & M \\ M^\top & 1 \end{pmatrix}`, and :math:`-\tfrac2t` times the upper right block of :math:`Z^{-1}`
meets the constraints, with a value that is at most :math:`(2d + m)/t` above the dual one. It knows nothing of training.
Source: arXiv:2308.16898, equation (KQ-SVM); Boyd and Vandenberghe, Convex Optimization, sections 5.9 and 11.6. Letters: m
constraints, d inputs.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn import linalg

TIMES, GROWTH, NEWTON = 20, 2.5, 8  # values of t, the factor between two of them, and Newton steps at each


class Solved(NamedTuple):
    """The solution, its singular values, and how far its value can be from the least one."""

    w: Float[Array, "d d"]
    singular: Float[Array, " d"]
    gap: Float[Array, ""]  # relative duality gap, or the worst violation if that is larger


def least_nuclear(a: Float[Array, "m d d"]) -> Solved:
    """The solution; ``gap`` stays large where the constraints cannot be met."""
    m, d, _ = a.shape
    blocks = jnp.zeros((m, 2 * d, 2 * d), a.dtype).at[:, :d, d:].set(a).at[:, d:, :d].set(a.transpose(0, 2, 1))

    # a damped Newton step on the barrier problem of the multipliers b at the time t
    def inverse(b: Float[Array, " m"]) -> Float[Array, "e e"]:
        return linalg.inv(jnp.eye(2 * d, dtype=a.dtype) + jnp.einsum("m,mij->ij", b, blocks))

    def newton(_: Int[Array, ""], state: tuple[Array, Array]) -> tuple[Array, Array]:
        b, t = state
        pulled = inverse(b) @ blocks
        slope = -t - jnp.trace(pulled, axis1=1, axis2=2) - 1 / b
        curve = jnp.einsum("mij,nji->mn", pulled, pulled) + jnp.diag(1 / b**2)
        scale = jnp.sqrt(jnp.diag(curve))
        move = -linalg.solve(curve / scale[:, None] / scale, slope / scale) / scale
        length = jnp.sqrt(jnp.maximum(-slope @ move, 0))  # Newton's decrement: the damped step stays inside
        return b + move / (1 + length), t

    def centre(k: Int[Array, ""], b: Float[Array, " m"]) -> Float[Array, " m"]:
        return jax.lax.fori_loop(0, NEWTON, newton, (b, GROWTH ** k.astype(a.dtype)))[0]

    # along the central path; W and the gap at its end
    start = jnp.full(m, 0.5 / jnp.sum(jnp.linalg.norm(a, axis=(1, 2))), a.dtype)
    b = jax.lax.fori_loop(0, TIMES, centre, start)
    w = -2 * GROWTH ** (1.0 - TIMES) * inverse(b)[:d, d:]
    singular = linalg.singular_values(w)
    violation = jnp.max(1 - jnp.einsum("mij,ij->m", a, w))
    return Solved(w, singular, jnp.maximum(1 - jnp.sum(b) / jnp.sum(singular), violation))
