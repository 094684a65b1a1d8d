r"""Separate keys and queries: the losses on which training from a small start rests, one eigenvalue after another.

.. math:: L_m = \tfrac12\Bigl[\mathrm{tr}\Lambda - \sum_{i \le m} \lambda_i^2/\Gamma_i\Bigr], \qquad
          \Gamma_i = (1 + \tfrac1N)\lambda_i + \tfrac{\mathrm{tr}\Lambda}{N}

for :math:`\lambda_1 > \lambda_2 > \dots` One mode learned by one head with :math:`v = \|k\| = \|q\| = a` obeys
:math:`\dot a = \lambda^2 a^2(1 - \Gamma_\lambda a^3)`: it waits for about :math:`1/(\lambda^2 a_0)`.
Source: arXiv:2501.16265, section 4. Letters: d inputs, N examples.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = float | int | Float[Array, ""]


def levels(eigenvalues: Float[Array, " d"], length: Scalar) -> Float[Array, " d1"]:
    """Losses with no, one, ..., all eigenvalues learned; eigenvalues in falling order."""
    trace = jnp.sum(eigenvalues)
    gain = eigenvalues**2 / ((1 + 1 / length) * eigenvalues + trace / length)
    return 0.5 * (trace - jnp.concatenate([jnp.zeros(1, gain.dtype), jnp.cumsum(gain)]))


def strengths(count: int) -> Float[Array, "d1 d"]:
    r"""Which eigenvalues are learned on each plateau: :math:`\Gamma_i P_{ii}` is 1 for the first m, and 0 for the others."""
    return jnp.tri(count + 1, count, -1, dtype=jnp.float64)
