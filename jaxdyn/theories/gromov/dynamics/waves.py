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

__all__ = ["waves"]


def waves(nodes: model.Nodes, modulus: int, slip: bool = False) -> Float[Array, "n M"]:
    """The logits of all pairs as sums of waves.

    Args:
        nodes: the network; its output phases may be any.
        modulus: M.
        slip: give the waves of 2B the phase of the first operand, a breach: those are the logits of another network.
    """
    operands = model.pairs(modulus)
    a, b = (nodes.theta * operands[:, i : i + 1] + phase for i, phase in enumerate((nodes.phi, nodes.psi)))
    twice = 2 * (b - nodes.psi + nodes.phi) if slip else 2 * b

    def one(c: Float[Array, ""]) -> Float[Array, " n"]:
        out = nodes.theta * c + nodes.chi
        whole = jnp.cos(out) + (jnp.cos(a + b - out) + jnp.cos(a + b + out) + jnp.cos(a - b + out) + jnp.cos(a - b - out)) / 2
        quarter = jnp.cos(2 * a - out) + jnp.cos(2 * a + out) + jnp.cos(twice - out) + jnp.cos(twice + out)
        return jnp.sum(whole + quarter / 4, 1)

    return jax.lax.map(one, jnp.arange(modulus, dtype=jnp.float64)).T
