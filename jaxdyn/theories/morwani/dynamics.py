r"""The largest margin of a network of unit (2,3)-norm on addition modulo a prime p > 2, and a network that has it.

.. math:: \gamma^* = \sqrt{\tfrac{2}{27}}\;\frac{1}{\sqrt p\,(p-1)}

Nodes are :math:`u_a = \lambda\cos(\omega a + \varphi)`, :math:`v_b = \lambda\cos(\omega b + \psi)`,
:math:`w_c = \lambda\cos(\omega c + \varphi + \psi)` with :math:`\omega = 2\pi\zeta/p`. With the eight phases below, the nodes of
one frequency, of cubes that sum to A, add :math:`\frac12(2/3p)^{3/2}A\cos\omega(a + b - c)` to the outputs and nothing else. The
margin over the class d further is then :math:`\frac12(2/3p)^{3/2}\sum_\zeta A_\zeta(1 - \cos\omega d)`; its least
value over d is at most its mean, and reaches it only if all :math:`A_\zeta` are equal.

Source: arXiv:2311.07568, theorem 7 (margin, one frequency a node, phases, every frequency); that the shares are equal follows as
above. Letters: k = (p-1)/2 frequencies, m = 8k nodes.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.theories.morwani import model


def frequencies(modulus: int) -> int:
    """Frequencies up to sign, (p-1)/2."""
    return (modulus - 1) // 2


def largest(modulus: int) -> float:
    """The largest normalised margin."""
    return float(np.sqrt(2 / 27) / (np.sqrt(modulus) * (modulus - 1)))


def one_frequency(modulus: int) -> float:
    """The normalised margin of the same construction with a single frequency."""
    return float((2 / (3 * modulus)) ** 1.5 / 2 * (1 - np.cos(2 * np.pi / modulus)))


def construct(modulus: int, share: Float[Array, " k"], shift: Float[Array, " m"]) -> model.Params:
    """The network with these shares of the cubes a frequency; ``shift`` is added to the output's phases, a breach."""
    count = frequencies(modulus)
    phases = np.stack(np.meshgrid([0, np.pi / 2, np.pi, 3 * np.pi / 2], [0, np.pi / 2], indexing="ij"), -1).reshape(8, 2)
    phi, psi = np.tile(phases.T, count)
    omega = 2 * np.pi * np.repeat(np.arange(1, count + 1), 8) / modulus
    at = np.arange(modulus)[:, None] * omega
    size = jnp.repeat(jnp.cbrt(share / 8), 8) * float((2 / (3 * modulus)) ** 0.5)
    return model.Params(*(size * jnp.cos(at + phase) for phase in (phi, psi, phi + psi + shift)))
