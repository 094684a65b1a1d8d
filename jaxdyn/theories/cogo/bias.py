r"""The means that the nodes of a network leave in its output, by the nodes that give them, and the network without such entries.

At frequency k the mean of the output over both operands is :math:`m_k = \sum_j v_j c_{kj}`, see ``dynamics/carriers.py``.
Letters: d elements, q nodes, k pairs of conjugate frequencies.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float, Int

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo.classify import Nodes
from jaxdyn.theories.cogo.dynamics.spectrum import inverse

PARTS = ("own", "order 6", "order 4", "rest")  # the frequency's own nodes; other groups; all other nodes, and zero modes


def node_orders(nodes: Nodes) -> Int[Array, " q"]:
    """The order of each node's frequency; 0 for nodes that belong to none."""
    return jnp.sum(jnp.where(nodes.member, nodes.order[:, None], 0), 0)


def means(nodes: Nodes, group: Abelian) -> Complex[Array, "4 k"]:
    """m_k by the nodes that give it (``PARTS``), paper scale; the spectrum's is the code's."""
    z, order = nodes.spectrum, node_orders(nodes)
    power = jnp.square(z[:2].real) + jnp.square(z[:2].imag)
    size = jnp.sum(power[:, group.pairs], (0, 1)) + jnp.sum(power[:, group.real], (0, 1)) / 2
    constant = jnp.square((z[0, 0] + z[1, 0]).real) / 2
    c = 2 * group.order * z[2, group.pairs]
    other = ~nodes.member
    choose = [nodes.member, (order == 6) & other, (order == 4) & other, (order != 4) & (order != 6) & other]
    parts = jnp.stack([jnp.sum(jnp.where(chosen, size * c, 0), 1) for chosen in choose])
    return parts.at[PARTS.index("rest")].add(jnp.sum(constant * c, 1))


def ablated(nodes: Nodes, group: Abelian, carriers: Bool[Array, " q"]) -> Float[Array, "3 d q"]:
    """Weights without the c-entries of these nodes at order-4 frequencies that are not their own."""
    cut = carriers & (nodes.order == 4)[:, None] & ~nodes.member
    rows = jnp.zeros(nodes.spectrum.shape[1:], bool).at[group.pairs].set(cut).at[group.negative[group.pairs]].set(cut)
    z = nodes.spectrum.at[2].set(jnp.where(rows, 0, nodes.spectrum[2]))
    return inverse(z, group)
