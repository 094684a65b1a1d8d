r"""Bias carriers: what order-6 groups of nodes add to the mean that order-4 groups leave, and what that does to trained networks.

The mean of the output over both operands, paper scale, has at frequency k the part

.. math:: m_k = r_{00k} + \tfrac12 \sum_{p,k'} r_{p,k',-k',k} = \sum_j v_j c_{kj}, \qquad
    v_j = \tfrac12 |a_{0j} + b_{0j}|^2 + \sum_{k' > 0} (|a_{k'j}|^2 + |b_{k'j}|^2)

(k' > 0: one of each pair), and each costs :math:`2|m_k|^2/d` of the loss. The own nodes of an order-4 frequency give
:math:`|m_k| = \sqrt 2`. Entries :math:`c_{kj}` of order-6 nodes at the frequencies of others cancel it, and do nothing else: over
an order-6 block the sums of ab, a conj b, aa and bb vanish. Without them the loss rises by the means'
own cost, 4/d for each exact block.
Weight decay holds a network at the least norm that solves the task, a little below the solution: where the gradient of
:math:`L + \tfrac\lambda2 \|w\|^2` vanishes, so does its part along w, which gives
:math:`2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk} = d - 1 - d\,(L + \tfrac\lambda6 \|w\|^2)`.
Source: arXiv:2410.01779, composed solutions; the sharing and the law of decay: derived. Letters: d elements of the group.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.data.abelian import Abelian

OWN = 2**0.5  # |m_k| of an exact order-4 block


def rise(group: Abelian, means: Float[Array, "*n k"]) -> Float[Array, "*n"]:
    r"""How much loss frequencies have whose own means, of these moduli, nothing cancels: :math:`2|m_k|^2/d` each."""
    return 2 * jnp.sum(jnp.square(means), -1) / group.order


def trained_norm(group: Abelian, energy: float | Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""Squared norm of the weights in the code's scale, from the Fourier norm in the paper's: :math:`d\,(2d)^{-2/3} E`."""
    return group.order * (2 * group.order) ** (-2 / 3) * jnp.asarray(energy)


def diagonal_under_decay(
    group: Abelian, decay: float | Float[Array, ""], norm: float | Float[Array, "*n"], loss: float | Float[Array, "*n"] = 0.0
) -> Float[Array, "*n"]:
    r""":math:`2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk}` at a stationary point of loss and decay together (code scale, all pairs)."""
    return group.order - 1 - group.order * (loss + decay * jnp.asarray(norm) / 6)
