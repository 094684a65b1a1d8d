r"""The logits of the constructed network as a sum of waves: one without a random phase, and eight with one.

With :math:`A = \theta a + \varphi`, :math:`B = \theta b + \psi`, :math:`C = \theta c + \varphi + \psi` the output of a node is

.. math:: (\cos A + \cos B)^2 \cos C = \tfrac12\cos\theta(a+b-c) + \cos C + \tfrac12\cos(A+B+C) + \tfrac12\cos(A-B\pm C)
          + \tfrac14\cos(2A\pm C) + \tfrac14\cos(2B\pm C)

Source: arXiv:2301.02679, equation 11. Letters as in ``model.py``.
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
