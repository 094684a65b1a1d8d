r"""Stage III of Li2: how nodes act on each other through the inverse Gram matrix of the features.

In :math:`G_F = P_\eta \tilde Y \tilde Y^\top \tilde F B` node l acts on node j through :math:`B_{jl}`, and

.. math:: B_{jl} = - \frac{f_j^\top P f_l}{(\eta + f_j^\top P f_j)(\eta + f_l^\top P f_l) - (f_j^\top P f_l)^2}, \qquad
    P = \eta \bigl(\tilde F_{-jl} \tilde F_{-jl}^\top + \eta I\bigr)^{-1}

with P the ridge residual operator of all other nodes (no projection for eta > 0): the component that two nodes
share, and that the other nodes do not span, is suppressed in both. The denominator is positive.
Source: arXiv:2509.21519, Theorem 6. Letters: f_j centred column j of F, n samples, K nodes.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn.theories.li2.dynamics.ridge import residual_operator
from jaxdyn.theories.li2.model import centred

Scalar = float | Float[Array, ""]


def overlap(f: Float[Array, "n K"], pair: Int[Array, " 2"], eta: Scalar) -> Float[Array, "2 2"]:
    r"""The matrix of :math:`f_j^\top P f_l` over both nodes of a pair."""
    f = centred(f)
    others = jnp.all(jnp.arange(f.shape[1])[:, None] != pair, 1)
    both = f[:, pair]
    return both.T @ (residual_operator(f * others, eta) @ both)


def coefficient(f: Float[Array, "n K"], pair: Int[Array, " 2"], eta: Scalar) -> Float[Array, ""]:
    r"""Theorem 6's :math:`B_{jl}` for two different nodes j, l: off the diagonal of :math:`(\eta I_2 + [f^\top P f])^{-1}`."""
    m = overlap(f, pair, eta)
    return -m[0, 1] / ((eta + m[0, 0]) * (eta + m[1, 1]) - jnp.square(m[0, 1]))
