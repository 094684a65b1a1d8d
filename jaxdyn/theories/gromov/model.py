r"""The network of Gromov: two operands, one hidden layer of squares, weights written down instead of trained.

.. math:: f_c(a, b) = \sum_j V_{jc}\bigl(\cos(\theta_j a + \varphi_j) + \cos(\theta_j b + \psi_j)\bigr)^2, \qquad
          V_{jc} = \cos(\theta_j c + \chi_j), \qquad \theta_j = 2\pi k_j / M

The construction takes :math:`\chi = \varphi + \psi`; the label of (a, b) is a + b modulo M. Source: arXiv:2301.02679, Claim I
(equations 6 and 12), without its common factor. Letters: M modulus, K nodes, n = M^2 pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


class Nodes(NamedTuple):
    """Angles per step of an operand, phases of both operands, phase of the output."""

    theta: Float[Array, " K"]
    phi: Float[Array, " K"]
    psi: Float[Array, " K"]
    chi: Float[Array, " K"]


class Weights(NamedTuple):
    """Weights of both operands and of the classes, the transpose of V."""

    first: Float[Array, "M K"]
    second: Float[Array, "M K"]
    top: Float[Array, "M K"]


def sample_nodes(
    key: PRNGKeyArray,
    modulus: int | Int[Array, ""],
    count: int,
    cycled: bool | Bool[Array, ""] = False,
    free: bool | Bool[Array, ""] = False,
) -> Nodes:
    """Random phases; frequencies uniform among 1 ... M-1, or (``cycled``) the source's 1, 2, ... modulo M.

    ``free`` breaks the construction: the output's phases are random too.
    """
    k_frequency, k_phase = jax.random.split(key)
    uniform = jax.random.randint(k_frequency, (count,), 1, modulus)
    frequency = jnp.where(cycled, (jnp.arange(count) + 1) % modulus, uniform)
    phi, psi, other = 2 * jnp.pi * jax.random.uniform(k_phase, (3, count), jnp.float64)
    theta = 2 * jnp.pi * frequency.astype(jnp.float64) / modulus
    return Nodes(theta, phi, psi, jnp.where(free, other, phi + psi))


def pairs(modulus: int) -> Int[np.ndarray, "n 2"]:
    """All pairs of operands."""
    return np.stack(np.divmod(np.arange(modulus**2), modulus), -1)


def labels(modulus: int) -> Int[np.ndarray, " n"]:
    """Their sums modulo M."""
    return pairs(modulus).sum(-1) % modulus


def weights(nodes: Nodes, modulus: int) -> Weights:
    """The weights of all nodes."""
    steps = jnp.arange(modulus, dtype=jnp.float64)[:, None]
    return Weights(*(jnp.cos(nodes.theta * steps + phase) for phase in (nodes.phi, nodes.psi, nodes.chi)))


def features(w: Weights) -> Float[Array, "n K"]:
    """The hidden layer on all pairs: squares of sums of two cosines."""
    return jnp.square(w.first[:, None] + w.second).reshape(len(w.first) ** 2, -1)


def outputs(w: Weights) -> Float[Array, "n M"]:
    """The network's outputs on all pairs."""
    return features(w) @ w.top.T


def logits(nodes: Nodes, modulus: int) -> Float[Array, "n M"]:
    """The outputs of the network with these nodes."""
    return outputs(weights(nodes, modulus))
