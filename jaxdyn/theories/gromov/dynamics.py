r"""What the constructed network gives: its logits as waves, and its margins over random phases.

The logits of the constructed network as a sum of waves: one without a random phase, and eight with one.

With :math:`A = \theta a + \varphi`, :math:`B = \theta b + \psi`, :math:`C = \theta c + \varphi + \psi` the output of a node is

.. math:: (\cos A + \cos B)^2 \cos C = \tfrac12\cos\theta(a+b-c) + \cos C + \tfrac12\cos(A+B+C) + \tfrac12\cos(A-B\pm C)
          + \tfrac14\cos(2A\pm C) + \tfrac14\cos(2B\pm C)

Source: arXiv:2301.02679, equation 11. Letters as in ``model.py``.

Margins of the constructed network over random phases, and how often the right class has the largest logit.

In :math:`p = A + B`, :math:`q = A - B`, which are uniform and independent, the logit of the class a + b + d is

.. math:: f_d = \sum_j g_j\cos(p_j + \theta_j d), \qquad g = (1 + \cos p)(1 + \cos q).

Source: derived here for the construction of arXiv:2301.02679, Claim I.
Letters: u = 1 - cos(theta d); S the logit of the right class, T half the sum of squares of g; K nodes, M modulus.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.theories.gromov import model


def coherent(nodes: model.Nodes, modulus: int) -> Float[Array, "n M"]:
    r"""The waves without a random phase, :math:`\tfrac12\sum_j\cos\theta_j(a+b-c)`; they know frequencies alone."""
    total = model.pairs(modulus).sum(-1)
    return jnp.sum(jnp.cos(nodes.theta * (total[:, None] - jnp.arange(modulus))[..., None].astype(jnp.float64)), -1) / 2


def waves(nodes: model.Nodes, modulus: int) -> Float[Array, "n M"]:
    """The logits of all pairs as sums of waves, for output phases that are the sums of the operands'."""
    operands = model.pairs(modulus)
    a, b = (nodes.theta * operands[:, i : i + 1] + phase for i, phase in enumerate((nodes.phi, nodes.psi)))

    def one(c: Float[Array, ""]) -> Float[Array, " n"]:
        out = nodes.theta * c + nodes.phi + nodes.psi
        whole = jnp.cos(out) + (jnp.cos(a + b + out) + jnp.cos(a - b + out) + jnp.cos(a - b - out)) / 2
        quarter = jnp.cos(2 * a - out) + jnp.cos(2 * a + out) + jnp.cos(2 * b - out) + jnp.cos(2 * b + out)
        return jnp.sum(whole + quarter / 4, 1)

    return coherent(nodes, modulus) + jax.lax.map(one, jnp.arange(modulus, dtype=jnp.float64)).T


MEAN_S, MEAN_T = 1 / 2, 9 / 8  # per node
VAR_S, VAR_T, COV_ST = 17 / 16, 901 / 256, 57 / 32
POINTS = 801  # of the integral over the logit of the right class


def margin_moments(theta: Float[Array, " K"], offsets: Float[Array, " d"]) -> tuple[Float[Array, "d K"], Float[Array, "d K"]]:
    r"""Mean and variance over random phases of the margin :math:`f_0 - f_d`, the contribution of each node.

    .. math:: \mathrm E = \tfrac12 u, \qquad \mathrm{Var} = \tfrac{15}{8}u + \tfrac18 u^2

    Over a full set of frequencies u averages to M / (M - 1) and u^2 to 3/2 of that: per node M / 2(M - 1) and 33 M / 16(M - 1).
    """
    u = 1 - jnp.cos(theta * offsets[:, None])
    return u / 2, 15 / 8 * u + jnp.square(u) / 8


def accuracy(
    nodes: Float[Array, " k"], modulus: float | Float[Array, ""], together: bool | Float[Array, ""] = True
) -> Float[Array, " k"]:
    r"""Share of pairs that are classified correctly, for K random nodes, to leading order in 1/K.

    .. math:: \int \varphi(z)\,\Phi\Bigl(\sqrt{\tfrac{M}{M-1}}\,\bigl(\tfrac{\sqrt{2K}}3 + \sigma z\bigr)\Bigr)^{M-1} dz,
              \qquad \sigma^2 = \tfrac{2305}{5832}

    Given p and q, random frequencies make the wrong logits white noise of variance T about their mean: the right class wins
    with probability :math:`\Phi(\sqrt{M/(M-1)}\,S/\sqrt T)^{M-1}`. S and T fluctuate together, and their ratio is normal with
    mean :math:`\sqrt{2K}/3` and variance :math:`\sigma^2` (delta method).

    Args:
        nodes: numbers of nodes K.
        modulus: M.
        together: 1, or 0 to hold T at its mean; the variance is then that of S alone, 17/18.
    """
    z = jnp.linspace(-8, 8, POINTS, dtype=jnp.float64)
    pull = together * MEAN_S / (2 * MEAN_T)
    spread = ((VAR_S - 2 * pull * COV_ST + pull**2 * VAR_T) / MEAN_T) ** 0.5
    centre = jnp.sqrt(nodes) * (MEAN_S / MEAN_T**0.5)
    ratio = (modulus / (modulus - 1)) ** 0.5 * (centre[:, None] + spread * z)
    density = jnp.exp(-jnp.square(z) / 2) / (2 * jnp.pi) ** 0.5
    return jax.scipy.integrate.trapezoid(density * jax.scipy.special.ndtr(ratio) ** (modulus - 1), z, axis=-1)
