r"""What the constructed network computes: one wave that survives, eight that cancel, and how often the right class wins.

With A = theta a + phi, B = theta b + psi, C = theta c + phi + psi the node's output is a sum of waves,

.. math:: (\cos A + \cos B)^2 \cos C = \tfrac12\cos\theta(a+b-c) + \cos C + \tfrac12\cos(A+B+C) + \tfrac12\cos(A-B\pm C)
          + \tfrac14\cos(2A\pm C) + \tfrac14\cos(2B\pm C)

of which only the first has no phase. In :math:`p = A + B`, :math:`q = A - B`, which are uniform and independent, the logit of
the class a + b + d is

.. math:: f_d = \sum_j g_j\cos(p_j + \theta_j d), \qquad g = (1 + \cos p)(1 + \cos q).

Source: arXiv:2301.02679, equations 10 to 16, for the waves; what follows for margins and accuracy is derived here.
Letters: u = 1 - cos(theta d); S the right class's logit, T half the sum of squares of g.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.theories.gromov import model

__all__ = ["accuracy", "margin_moments", "waves"]

MEAN_S, MEAN_T = 1 / 2, 9 / 8  # per node
VAR_S, VAR_T, COV_ST = 17 / 16, 901 / 256, 57 / 32
POINTS = 801  # of the integral over the right class's logit


def waves(nodes: model.Nodes, modulus: int, slip: bool = False) -> Float[Array, "n M"]:
    """The logits of all pairs as sums of waves (equation 11 of the source).

    With a ``slip`` the waves of 2B carry the first operand's phase: the logits of another network.
    """
    operands = model.pairs(modulus)
    a, b = (nodes.theta * operands[:, i : i + 1] + phase for i, phase in enumerate((nodes.phi, nodes.psi)))
    twice = 2 * (b - nodes.psi + nodes.phi) if slip else 2 * b

    def one(c: Array) -> Float[Array, " n"]:
        out = nodes.theta * c + nodes.chi
        whole = jnp.cos(out) + (jnp.cos(a + b - out) + jnp.cos(a + b + out) + jnp.cos(a - b + out) + jnp.cos(a - b - out)) / 2
        quarter = jnp.cos(2 * a - out) + jnp.cos(2 * a + out) + jnp.cos(twice - out) + jnp.cos(twice + out)
        return jnp.sum(whole + quarter / 4, 1)

    return jax.lax.map(one, jnp.arange(modulus, dtype=jnp.float64)).T


def margin_moments(theta: Float[Array, " K"], offsets: Float[Array, " d"]) -> tuple[Float[Array, "d K"], Float[Array, "d K"]]:
    r"""Mean and variance over random phases of the margin :math:`f_0 - f_d`, contributions of every node.

    .. math:: \mathrm E = \tfrac12 u, \qquad \mathrm{Var} = \tfrac{15}{8}u + \tfrac18 u^2

    Over a full set of frequencies u averages to M / (M - 1) and u^2 to 3/2 of that: per node M / 2(M - 1) and 33 M / 16(M - 1).
    """
    u = 1 - jnp.cos(theta * offsets[:, None])
    return u / 2, 15 / 8 * u + jnp.square(u) / 8


def accuracy(nodes: Float[Array, " k"], modulus: int, together: bool = True) -> Float[Array, " k"]:
    r"""Share of pairs on which the right class wins, for K random nodes, to leading order in 1/K.

    Given p and q, random frequencies make the wrong logits white noise of variance T about their mean: the right class wins
    with probability :math:`\Phi(\sqrt{M/(M-1)}\,S/\sqrt T)^{M-1}`. S and T grow together, and their ratio is normal with mean
    :math:`\sqrt{2K}/3` and variance 2305/5832 (delta method). Not ``together``: as if T stayed at its mean; the variance is then
    that of S alone, 17/18.
    """
    z = jnp.linspace(-8, 8, POINTS, dtype=jnp.float64)
    pull = MEAN_S / (2 * MEAN_T) if together else 0.0
    spread = ((VAR_S - 2 * pull * COV_ST + pull**2 * VAR_T) / MEAN_T) ** 0.5
    centre = jnp.sqrt(nodes) * (MEAN_S / MEAN_T**0.5)
    ratio = (modulus / (modulus - 1)) ** 0.5 * (centre[:, None] + spread * z)
    density = jnp.exp(-jnp.square(z) / 2) / (2 * jnp.pi) ** 0.5
    return jax.scipy.integrate.trapezoid(density * jax.scipy.special.ndtr(ratio) ** (modulus - 1), z, axis=-1)
