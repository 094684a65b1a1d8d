r"""The scalar problem :math:`L = \tfrac12(uv-1)^2`: where gradient flow stops, and where gradient descent can.

Letters: d = u^2 - v^2, conserved by the flow; p = uv. At a minimum (p = 1) the sharpness is :math:`u^2+v^2 = \sqrt{d^2+4}`.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.theories.cal.model import Scalar


def edge(eta: Scalar) -> Float[Array, ""]:
    r"""The largest sharpness at which gradient descent can stay, :math:`2/\eta`."""
    return 2 / eta


def flow_sharpness(u0: Scalar, v0: Scalar) -> Float[Array, ""]:
    r"""Sharpness at which gradient flow stops: :math:`\sqrt{(u_0^2-v_0^2)^2 + 4}`."""
    return jnp.sqrt((u0**2 - v0**2) ** 2 + 4)


def flattening(u0: Scalar, v0: Scalar) -> Float[Array, ""]:
    r"""First-order change of the final sharpness with the step size, :math:`-d^2J/\sqrt{d^2+4}`.

    Gradient descent moves d by :math:`-\eta^2 d\,E^2` a step (:math:`E = 1-p`), and along the flow
    :math:`\dot p = E\sqrt{d^2+4p^2}`, so that d shrinks by the factor :math:`1-\eta J`,

    .. math:: J = \int_{p_0}^1\frac{1-p}{\sqrt{d^2+4p^2}}\,dp
                = \Bigl[\tfrac12\operatorname{arsinh}\tfrac{2p}{|d|} - \tfrac14\sqrt{d^2+4p^2}\Bigr]_{p_0}^1 .

    Ours; the implicit regularisation of arXiv:2009.11162 in closed form.
    """
    d, p0 = u0**2 - v0**2, u0 * v0

    def primitive(p: Scalar) -> Float[Array, ""]:
        return 0.5 * jnp.arcsinh(2 * p / jnp.abs(d)) - 0.25 * jnp.sqrt(d**2 + 4 * p**2)

    return -(d**2) * (primitive(1.0) - primitive(p0)) / jnp.sqrt(d**2 + 4)
