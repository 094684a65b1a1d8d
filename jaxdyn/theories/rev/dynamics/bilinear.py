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

Scalar = float | int | Float[Array | np.ndarray, "*#n"]


def orthonormal_loss(t: Scalar, m: int, n: int) -> Float[Array, "*n"]:
    r"""L(t) for orthonormal tokens and a start at 0: :math:`\ln(1 + (m-1)e^{-u})`, :math:`(m-1)u + e^u - 1 = mt/n`."""
    return jnp.log1p((m - 1) * jnp.exp(-clock(m * jnp.asarray(t) / n, float(m))))


def reverse_floor(start: Scalar, ratio: Scalar, exponent: Scalar) -> Float[Array, "*n"]:
    r"""Theorem 1's lower bound of the reverse loss, :math:`L_\text{rev}(0)\,(L(t)/L(0))^\epsilon`."""
    return start * jnp.asarray(ratio) ** exponent


def first_exponent(m: int, d: float) -> tuple[float, float]:
    r"""Mean and standard deviation, over Gaussian tokens, of the exponent that the reverse loss needs at the start of the flow.

    .. math:: \epsilon_0 = \frac{dL_\text{rev}/dt}{dL/dt} = \frac{1 + \sqrt2\,g}{d} + \frac{g'}{m\sqrt d},
              \qquad g, g' \sim N(0, 1)

    Derived for m and d well above 1, from :math:`\dot W = -G\,\nabla_W L\,G` at W = 0, where
    :math:`n\,\dot L_\text{rev} \propto \sum_{ij} G_{y_ix_j}(G_{y_jx_i} - 1/m)`: of the overlaps, normal of variance 1/d, the n
    squares give the mean, the products of two the first fluctuation and the 1/m the second. It does not depend on n.
    """
    return 1 / d, math.sqrt(2 / d**2 + 1 / (m**2 * d))


def mean_rise(loss: Scalar, n: int, m: int, d: Scalar) -> Float[Array, "*n"]:
    r"""By how much the mean reverse loss exceeds that of a guess, :math:`\ln m`, once the loss has fallen to L.

    .. math:: \frac nm\Bigl(e^{A^2/2d} - 1\Bigr) + \frac{nA^2}{2d^2} - \frac Ad, \qquad
              A = \Bigl(1 - \frac1m\Bigr) \ln\frac{m-1}{e^L - 1}

    Derived to first order in the overlaps, normal of variance 1/d: a trained row :math:`x_j` has gained A times
    :math:`e_{y_j}` minus its mean, so that the logit of token k after :math:`y_i` is :math:`A\sum_j G_{y_ix_j}G_{y_jk}`. That is
    normal of variance :math:`A^2/d` where k is some :math:`y_j` (n of m tokens) and :math:`nA^2/d^2` elsewhere, which
    the logarithm of the sum of exponentials counts; the logit of the right answer :math:`x_i` has the mean A/d.
    """
    a = (1 - 1 / m) * jnp.log((m - 1) / jnp.expm1(jnp.asarray(loss)))
    return n / m * jnp.expm1(a**2 / (2 * d)) + n * a**2 / (2 * d**2) - a / d


def half_guess(m: int) -> float:
    r"""Theorem 2's lower bound of the reverse loss at the time when L first is c, whatever c: :math:`\ln(m/2)`."""
    return math.log(m / 2)
