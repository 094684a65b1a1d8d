r"""Loss laws in size N and tokens D, and the best of both at a budget of compute :math:`C = 6ND`.

.. math:: L(N, D) = E + A N^{-\alpha} + B D^{-\beta}, \qquad N^* = G (C/6)^a, \quad D^* = G^{-1} (C/6)^b, \qquad
   G = \Bigl(\frac{\alpha A}{\beta B}\Bigr)^{1/(\alpha+\beta)}, \quad a = \frac{\beta}{\alpha+\beta}, \quad b = 1 - a

Sources: arXiv:2203.15556 (Hoffmann), section 3.3; arXiv:2001.08361 (Kaplan), equation 1.5; the bias of parabolas as in
arXiv:2603.22339, here in closed form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

COST = 6.0  # operations for a weight and a token


class Law(NamedTuple):
    """The additive law: E, A, B and both exponents."""

    e: Any
    a: Any
    b: Any
    alpha: Any
    beta: Any


class Kaplan(NamedTuple):
    r""":math:`L = \bigl[(N_c/N)^{\alpha_N/\alpha_D} + D_c/D\bigr]^{\alpha_D}`."""

    n: Any
    d: Any
    alpha_n: Any
    alpha_d: Any


def loss(law: Law, n: Any, d: Any) -> Any:
    """The additive law at N weights and D tokens."""
    return law.e + law.a * n**-law.alpha + law.b * d**-law.beta


def exponent(law: Law) -> Any:
    r""":math:`a = \beta/(\alpha+\beta)`, the exponent of the best size in the budget."""
    return law.beta / (law.alpha + law.beta)


def optimum(law: Law, budget: Any) -> tuple[Any, Any]:
    """Size and tokens of the least loss at a budget, in closed form."""
    a = exponent(law)
    g = (law.alpha * law.a / (law.beta * law.b)) ** (1 / (law.alpha + law.beta))
    return g * (budget / COST) ** a, (budget / COST) ** (1 - a) / g


def kaplan_loss(law: Kaplan, n: Any, d: Any) -> Any:
    """Kaplan's law at N weights and D tokens."""
    return ((law.n / n) ** (law.alpha_n / law.alpha_d) + law.d / d) ** law.alpha_d


def kaplan_optimum(law: Kaplan, budget: Any) -> tuple[Any, Any]:
    r"""Size and tokens of the least loss by Kaplan's law.

    .. math:: N^* = \bigl(r N_c^r\, C / (6 D_c)\bigr)^{1/(1+r)}, \qquad r = \alpha_N/\alpha_D, \qquad a = \frac{1}{1+r}
    """
    r = law.alpha_n / law.alpha_d
    n = (r * law.n**r * budget / (COST * law.d)) ** (1 / (1 + r))
    return n, budget / (COST * n)


def parabola_shift(alpha: Any, beta: Any, x: Float[Array, " s"]) -> Float[Array, ""]:
    r"""By how much the vertex of a parabola in :math:`\ln N` misses :math:`\ln N^*`, at any budget.

    At a budget the law is :math:`E + K\,g(\ln N - \ln N^*)` with :math:`g(x) = e^{-\alpha x}/\alpha + e^{\beta x}/\beta`. For
    sizes at distances x that lie symmetrically about zero, the least squares' parabola has its vertex at

    .. math:: x_0 = -\frac{c_1}{2 c_2}, \qquad c_1 = \frac{\sum x g}{\sum x^2}, \qquad
       c_2 = \frac{\sum (x^2 - \overline{x^2})\, g}{\sum (x^2 - \overline{x^2})^2}

    It depends on neither K nor the budget, so that the slope of the vertices is exact and their height is not.

    Args:
        alpha: exponent of N.
        beta: exponent of D.
        x: distances of the sizes from the best one, in logarithms.
    """
    odd, even = jnp.sinh(beta * x) / beta - jnp.sinh(alpha * x) / alpha, jnp.cosh(alpha * x) / alpha + jnp.cosh(beta * x) / beta
    square = x**2 - jnp.mean(x**2)
    c1, c2 = jnp.sum(x * odd) / jnp.sum(x**2), jnp.sum(square * even) / jnp.sum(square**2)
    return -c1 / (2 * c2)
