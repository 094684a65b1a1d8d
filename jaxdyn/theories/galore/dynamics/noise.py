r"""m rows, one with a target and q with nothing but noise of size :math:`\sigma \sqrt n`; a basis of r directions on the left.

The r leading singular vectors of the noisy gradient point along the rows of noise if there are as many. Row 1 then learns in the
step in which its basis is found, where the same noise stands in basis and gradient, by r/n of its gradient, and in the T - 1 others
by the square of the basis' angles. With more directions than rows of noise the basis holds row 1 itself. A random basis lets r/m of
the gradient through, and a share c of each row's variance:

.. math:: \|w_1 - w^*\| = \exp\Bigl(-\frac{r \eta k}{T} \Bigl[\frac1n + \frac{T - 1}{\sigma^2 n^2}\Bigr]\Bigr) \ (r \le q), \quad
   e^{-\eta k} \ (r > q), \quad
   \sqrt{u + \frac{c m}{2 r} \eta n q \sigma^2 (1 - u)} \ \text{(random)}

with :math:`u = e^{-2 \eta k r / m}` and :math:`c = \frac{r (m - r)}{m (m - 1) (m + 2)}`.
Source: the example, of two rows, is that of arXiv:2410.11289 (GoLore), section 4; the formulas are derived here, to leading order
in :math:`1 / (\sigma^2 n)` and :math:`\eta`.
Letters: k steps, eta rate, sigma noise, n entries of a row, T steps between two bases; the distance at the start is 1.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Number = float | Float[Array, ""]


def distance_left(
    finder: str,
    k: Int[Array, " t"],
    eta: Number,
    sigma: Number,
    n: int,
    period: int,
    rank: int = 1,
    rows: int = 2,
    noisy: Number = 1.0,
) -> Float[Array, " t"]:
    """The root mean square distance after k steps, for bases by "svd" or random ("orthonormal"); ``noisy`` rows have noise."""
    if finder == "svd":
        leak = rank / period * (1 / n + (period - 1) / (sigma * n) ** 2)
        return jnp.exp(-eta * k * jnp.where(rank > noisy, 1.0, leak))
    kept = jnp.exp(-2 * eta * k * rank / rows)
    passed = rank * (rows - rank) / (rows * (rows - 1) * (rows + 2))
    return jnp.sqrt(kept + rows / (2 * rank) * eta * n * noisy * sigma**2 * passed * (1 - kept))
