r"""Directions that separate the optimal token of every sequence from the others: of least norm, and of least nuclear norm.

The support vector machine that separates the optimal token of every sequence from the others.

.. math:: p_{mm} = \arg\min \|p\| \quad\text{with}\quad (F_{i,\mathrm{opt}_i} - F_{it}) \cdot p \ge 1
          \quad\text{for all } i,\ t \ne \mathrm{opt}_i

Solved by a primal-dual interior-point method for quadratic programmes, which knows nothing of training.
Source: arXiv:2308.16898, equation (Att-SVM); Nocedal and Wright, Numerical Optimization, section 16.6. Letters: m constraints,
D features; A rows of differences; s slacks; b multipliers (:math:`\alpha`).

The matrix of least nuclear norm that separates the optimal token of every sequence from the others.

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

STEPS, CENTRE, KEEP = 60, 0.1, 0.9


class Solved(NamedTuple):
    """The solution, its multipliers, and how far it is from the conditions of optimality."""

    p: Float[Array, " D"]
    multipliers: Float[Array, " m"]
    error: Float[Array, ""]  # the larger of the worst violation, and of |p - A^T b| over |p|


def differences(features: Float[Array, "n T D"], optimal: Int[Array, " n"]) -> Float[Array, "m D"]:
    """Rows of A: the optimal token minus every other one, n(T - 1) in all."""
    n, t, size = features.shape
    others = jnp.arange(t - 1) + (jnp.arange(t - 1) >= optimal[:, None])
    best = jnp.take_along_axis(features, optimal[:, None, None], 1)
    rest = jnp.take_along_axis(features, others[:, :, None], 1)
    return (best - rest).reshape(n * (t - 1), size)


def largest_margin(a: Float[Array, "m D"]) -> Solved:
    """The solution; ``error`` stays large where the constraints cannot be met."""
    ones = jnp.ones(a.shape[0], a.dtype)
    eye = jnp.eye(a.shape[1], dtype=a.dtype)

    def room(x: Float[Array, " m"], move: Float[Array, " m"]) -> Float[Array, ""]:
        return jnp.minimum(1.0, KEEP * jnp.min(jnp.where(move < 0, -x / jnp.where(move < 0, move, -1.0), jnp.inf)))

    def improve(_: Int[Array, ""], state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        p, s, b = state
        primal, centre = a @ p - 1 - s, s * b - CENTRE * (s @ b) / s.size
        right = a.T @ b - p - a.T @ ((centre + b * primal) / s)
        dp = linalg.solve(eye + (a.T * (b / s)) @ a, right)
        ds = a @ dp + primal
        db = -(centre + b * ds) / s
        size = jnp.minimum(room(s, ds), room(b, db))
        size = jnp.where(s @ b > 1e-14, size, 0.0)
        return p + size * dp, s + size * ds, b + size * db

    p, _, b = jax.lax.fori_loop(0, STEPS, improve, (jnp.zeros(a.shape[1], a.dtype), ones, ones))
    violation = jnp.max(1 - a @ p)
    return Solved(p, b, jnp.maximum(violation, jnp.linalg.norm(p - a.T @ b) / jnp.linalg.norm(p)))


TIMES, GROWTH, NEWTON = 20, 2.5, 8  # values of t, the factor between two of them, and Newton steps at each


class SolvedNuclear(NamedTuple):
    """The solution, its singular values, and how far its value can be from the least one."""

    w: Float[Array, "d d"]
    singular: Float[Array, " d"]
    gap: Float[Array, ""]  # relative duality gap, or the worst violation if that is larger


def least_nuclear(a: Float[Array, "m d d"]) -> SolvedNuclear:
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
    return SolvedNuclear(w, singular, jnp.maximum(1 - jnp.sum(b) / jnp.sum(singular), violation))
