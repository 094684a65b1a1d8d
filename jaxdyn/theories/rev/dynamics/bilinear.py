r"""What is known of the bilinear model: exact losses for orthonormal tokens, and the theorems' lower bounds of the reverse loss.

Letters: m tokens, n pairs, t the time of gradient flow. Source: arXiv:2405.04669, Theorems 1 and 2; the orthonormal case is
derived: rows of W do not act on each other, and a row x_i of target y_i follows the clock of snap's ``dynamics/clock.py``.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.theories.snap.dynamics.clock import clock

__all__ = ["half_guess", "orthonormal_loss", "reverse_floor"]

Scalar = float | int | Float[Array | np.ndarray, "*#n"]


def orthonormal_loss(t: Scalar, m: int, n: int) -> Float[Array, "*n"]:
    r"""L(t) for orthonormal tokens and a start at 0: :math:`\ln(1 + (m-1)e^{-u})`, :math:`(m-1)u + e^u - 1 = mt/n`."""
    return jnp.log1p((m - 1) * jnp.exp(-clock(m * jnp.asarray(t) / n, float(m))))


def reverse_floor(start: Scalar, ratio: Scalar, exponent: Scalar) -> Float[Array, "*n"]:
    r"""Theorem 1's lower bound of the reverse loss, :math:`L_\text{rev}(0)\,(L(t)/L(0))^\epsilon`."""
    return start * jnp.asarray(ratio) ** exponent


def half_guess(m: int) -> float:
    r"""Theorem 2's lower bound of the reverse loss at the time when L first is c, whatever c: :math:`\ln(m/2)`."""
    return math.log(m / 2)
