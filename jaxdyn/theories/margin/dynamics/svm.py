r"""The support vector machine that separates the optimal token of every sequence from the others.

.. math:: p_{mm} = \arg\min \|p\| \quad\text{with}\quad (F_{i,\mathrm{opt}_i} - F_{it}) \cdot p \ge 1
          \quad\text{for all } i,\ t \ne \mathrm{opt}_i

Solved by a primal-dual interior-point method for quadratic programmes, which knows nothing of training.
Source: arXiv:2308.16898, equation (Att-SVM); Nocedal and Wright, Numerical Optimization, section 16.6. Letters: m constraints,
D features; A rows of differences; s slacks; b multipliers (:math:`\alpha`).
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
