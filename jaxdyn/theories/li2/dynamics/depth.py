r"""One more layer in Li2: the signal that a wide random ReLU layer passes to the layer below.

With :math:`F_2 = \sigma(F_1 W)` and the early signal :math:`G_2 = S F_2`, :math:`S = \tilde Y \tilde Y^\top`, sample i of the layer
below receives :math:`\sum_{jk} S_{ij}\, \sigma'(a_{ik})\, \sigma(a_{jk})\, w_k`, :math:`a = F_1 W`. Its mean over a Gaussian node w
of variance one is, by parts (Stein),

.. math:: \sum_j S_{ij} \bigl( \kappa_{ij} F_{1j} + \rho_{ij} F_{1i} \bigr), \qquad \kappa = \frac{\pi - \theta}{2\pi}, \qquad
    \rho_{ij} = \frac{\|F_{1j}\|}{\|F_{1i}\|} \frac{\sin\theta_{ij}}{2\pi},

theta the angle between the rows of F_1. The first term is :math:`D S D F_1` with averaged masks D, as if independent of w; the
second comes from their dependence on it.
Source: arXiv:2509.21519, extension to deeper networks, has the first term (masks, and :math:`W W^\top \approx I`); the second is
derived. Letters: n samples, d nodes below, K above.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def masked(f: Float[Array, "n d"], signal: Float[Array, "n n"]) -> Float[Array, "n d"]:
    """The first term: the signal reweighted by how often two samples are active together."""
    return (signal * ((jnp.pi - _angles(f)) / (2 * jnp.pi))) @ f


def received(f: Float[Array, "n d"], signal: Float[Array, "n n"]) -> Float[Array, "n d"]:
    """The mean of what one random node sends to the layer below: both terms."""
    norms = jnp.linalg.norm(f, axis=1)
    own = jnp.sum(signal * jnp.sin(_angles(f)) * norms, 1) / (2 * jnp.pi * norms)
    return masked(f, signal) + own[:, None] * f


def _angles(f: Float[Array, "n d"]) -> Float[Array, "n n"]:
    unit = f / jnp.linalg.norm(f, axis=1, keepdims=True)
    return jnp.arccos(jnp.clip(unit @ unit.T, -1, 1))
