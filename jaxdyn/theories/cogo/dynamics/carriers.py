r"""Bias carriers: how order-6 groups of nodes take away the mean that order-4 groups leave, and what that does to trained networks.

The mean of the output over both operands, paper scale, has at frequency k the part

.. math:: m_k = r_{00k} + \tfrac12 \sum_{p,k'} r_{p,k',-k',k} = \sum_j v_j c_{kj}, \qquad
    v_j = \tfrac12 |a_{0j} + b_{0j}|^2 + \sum_{k' > 0} (|a_{k'j}|^2 + |b_{k'j}|^2)

(k' > 0: one of each pair), and each costs :math:`2|m_k|^2/d` of the loss. The own nodes of an order-4 frequency give
:math:`|m_k| = \sqrt 2`. Entries :math:`c_{kj}` of order-6 nodes at the frequencies of others cancel it, and do nothing else: over
an order-6 block the sums of ab, a conj b, aa and bb vanish. Without them the loss rises by 4/d for each order-4 frequency.
Weight decay holds a network at the least norm that solves the task, a little below the solution: where the gradient of
:math:`L + \tfrac\lambda2 \|w\|^2` vanishes, so does its part along w, which gives
:math:`2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk} = d - 1 - d\,(L + \tfrac\lambda6 \|w\|^2)`.
Source: arXiv:2410.01779, composed solutions; the sharing and the law of decay: derived. Letters: d elements, q nodes, k pairs.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float, Int

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo.classify import Nodes
from jaxdyn.theories.cogo.dynamics.spectrum import inverse

__all__ = ["OWN", "PARTS", "ablated", "diagonal_under_decay", "means", "node_orders", "rise", "trained_norm"]

PARTS = ("own", "order 6", "order 4", "rest")  # the frequency's own nodes; other groups; all other nodes, and zero modes
OWN = 2**0.5  # |m_k| of an exact order-4 block


def node_orders(found: Nodes) -> Int[Array, " q"]:
    """The order of each node's frequency; 0 for nodes that belong to none."""
    return jnp.sum(jnp.where(found.member, found.order[:, None], 0), 0)


def means(found: Nodes, group: Abelian) -> Complex[Array, "4 k"]:
    """m_k by the nodes that give it (``PARTS``), paper scale; the spectrum's is the code's."""
    z, order = found.spectrum, node_orders(found)
    power = jnp.square(z[:2].real) + jnp.square(z[:2].imag)
    size = jnp.sum(power[:, group.pairs], (0, 1)) + jnp.sum(power[:, group.real], (0, 1)) / 2
    constant = jnp.square((z[0, 0] + z[1, 0]).real) / 2
    c = 2 * group.order * z[2, group.pairs]
    other = ~found.member
    choose = [found.member, (order == 6) & other, (order == 4) & other, (order != 4) & (order != 6) & other]
    parts = jnp.stack([jnp.sum(jnp.where(nodes, size * c, 0), 1) for nodes in choose])
    return parts.at[PARTS.index("rest")].add(jnp.sum(constant * c, 1))


def ablated(found: Nodes, group: Abelian, carriers: Bool[Array, " q"]) -> Float[Array, "3 d q"]:
    """Weights without the c-entries of these nodes at order-4 frequencies that are not their own."""
    cut = carriers & (found.order == 4)[:, None] & ~found.member
    rows = jnp.zeros(found.spectrum.shape[1:], bool).at[group.pairs].set(cut).at[group.negative[group.pairs]].set(cut)
    z = found.spectrum.at[2].set(jnp.where(rows, 0, found.spectrum[2]))
    return inverse(z, group)


def rise(group: Abelian, fours: float | Float[Array, "*n"]) -> Float[Array, "*n"]:
    """How much loss that many order-4 frequencies have without carriers: 4/d each."""
    return 2 * OWN**2 * jnp.asarray(fours) / group.order


def trained_norm(group: Abelian, energy: float | Float[Array, "*n"]) -> Float[Array, "*n"]:
    r"""Squared norm of the weights in the code's scale, from the Fourier norm in the paper's: :math:`d\,(2d)^{-2/3} E`."""
    return group.order * (2 * group.order) ** (-2 / 3) * jnp.asarray(energy)


def diagonal_under_decay(
    group: Abelian, decay: float | Float[Array, ""], norm: float | Float[Array, "*n"], loss: float | Float[Array, "*n"] = 0.0
) -> Float[Array, "*n"]:
    r""":math:`2d \sum_{k\ne0} \mathrm{Re}\,r_{kkk}` at a stationary point of loss and decay together (code scale, all pairs)."""
    return group.order - 1 - group.order * (loss + decay * jnp.asarray(norm) / 6)
