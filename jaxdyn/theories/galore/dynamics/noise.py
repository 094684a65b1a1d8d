r"""Two rows, one with a target and one with nothing but noise of size :math:`\sigma \sqrt n`, in one direction out of two.

Singular vectors of the noisy gradient point along row 2. Row 1 learns in the step in which its basis is found, where the same
noise stands in basis and gradient, by 1/n of its gradient, and in the T - 1 others by the square of the basis' angle:

.. math:: \|w_1 - w^*\| = \exp\Bigl(-\frac{\eta k}{T} \Bigl[\frac1n + \frac{T - 1}{\sigma^2 n^2}\Bigr]\Bigr) \ \text{(SVD)}, \qquad
   \sqrt{e^{-\eta k} + \tfrac18 \eta n \sigma^2 (1 - e^{-\eta k})} \ \text{(random)}

A random direction lets half of the gradient through, and an eighth of the noise's variance. Source: the example is that of
arXiv:2410.11289 (GoLore), section 4; the formulas are derived here, to leading order in :math:`1 / (\sigma^2 n)` and :math:`\eta`.
Letters: k steps, eta rate, sigma noise, n entries of a row, T steps between two bases; the distance at the start is 1.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = ["distance_left"]

Number = float | Float[Array, ""]


def distance_left(finder: str, k: Int[Array, " t"], eta: Number, sigma: Number, n: int, period: int) -> Float[Array, " t"]:
    """The root mean square distance after k steps, for bases by "svd" or random ("orthonormal")."""
    if finder == "svd":
        return jnp.exp(-eta * k / period * (1 / n + (period - 1) / (sigma * n) ** 2))
    kept = jnp.exp(-eta * k)
    return jnp.sqrt(kept + eta * n * sigma**2 / 8 * (1 - kept))
