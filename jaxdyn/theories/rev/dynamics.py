r"""The reversal curse: closed forms of the bilinear model, and the reduced dynamics of the one-layer transformer.

What is known of the bilinear model: exact losses for orthonormal tokens, and the theorems' lower bounds of the reverse loss.

Letters: m tokens, n pairs, t the time of gradient flow. Source: arXiv:2405.04669, Theorems 1 and 2; the orthonormal case is
derived: rows of W do not act on each other, and a row x_i of target y_i follows the clock of snap's ``dynamics/clock.py``.

What is known exactly of the one-layer model: clocks of single rows, the theorems' bound, entries of the decoder.

A row x1 of Y after k visits, all with one target, is :math:`h (M e_\text{target} - 1)` with :math:`h = u_k / M`; the
clock u_k and its mean over the randomness of SGD are those of ``theories/snap/dynamics/clock.py``. A row that no sequence
begins with never moves. Letters: M tokens, N training sequences, eta the step size, t the steps made, :math:`s = M\eta t/N`.
Source: arXiv:2405.04669, Theorems 3 and 4 and their proofs.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.theories.snap.dynamics.clock import clock

Scalar = float | int | Float[Array, "*#n"]


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


def time(eta: Scalar, steps: Scalar, size: Scalar, rows: Scalar) -> Float[Array, "*n"]:
    r"""The theorems' time :math:`s = M \eta t / N`."""
    return jnp.asarray(size * eta * steps / rows)


def bound(s: Scalar, size: Scalar, exponent: Scalar) -> Float[Array, "*n"]:
    r"""Lower bound of the probability of a trained target, :math:`1 - \frac{M-1}{2 s^c}` (Theorems 3 and 4)."""
    return 1 - (size - 1) / (2 * jnp.asarray(s) ** exponent)


def effective_exponent(p: Scalar, s: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""The largest c for which a probability p obeys the bound at time s: :math:`\ln\frac{M-1}{2(1-p)} / \ln s`."""
    return jnp.log((size - 1) / (2 * (1 - jnp.asarray(p)))) / jnp.log(s)


def flow_exponent(u: Scalar, s: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""The same in gradient flow: :math:`\ln\frac{M-1+e^u}{2}/\ln s`, u the clock at s; below 1, about :math:`1 - \ln 2/\ln s`."""
    return (jnp.logaddexp(u, jnp.log(size - 1.0)) - jnp.log(2.0)) / jnp.log(s)


def entry_target(u: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""Transformer entry of a row's target, :math:`h(M-1)`."""
    return jnp.asarray(u) * (size - 1) / size


def entry_other(u: Scalar, size: Scalar) -> Float[Array, "*n"]:
    r"""Transformer entry of each other token, :math:`-h`."""
    return -jnp.asarray(u) / size
