r"""Descent within fixed subspaces where A, B and C depend on the weights; where descent ends if inputs lack dimensions.

.. math:: \|R_t\|_F \le \bigl[1 - \eta\,(\kappa_{t-1} - L_A - c\, L_B L_C D^2)\bigr]\, \|R_{t-1}\|_F, \qquad
   c = 1 \ (\text{printed}), \quad c = 2 \ (\text{corrected})

L: Lipschitz constants in W; D: largest norm of W, all in Frobenius norms (of B and C spectral ones suffice). Both
:math:`(B_t - B_{t-1}) W C_t` and :math:`B_{t-1} W (C_t - C_{t-1})` may be as large as :math:`L_B L_C D^2 \|W_t - W_{t-1}\|`, and
that only if :math:`\|B\| \le L_B D`, :math:`\|C\| \le L_C D`. Source: arXiv:2403.03507, theorem 3.8 (printed); corrected: derived.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn import linalg


def kappa(b: Float[Array, "N m m"], c: Float[Array, "N n n"], p: Float[Array, "m r"], q: Float[Array, "n s"]) -> Float[Array, ""]:
    """The mean product of the smallest eigenvalues of P'BP and Q'CQ."""
    small = (jnp.einsum("mr,imk,ks->irs", x, y, x) for x, y in ((p, b), (q, c)))
    low_b, low_c = (linalg.eigvalsh(x)[:, 0] for x in small)
    return jnp.mean(low_b * low_c)


def factors(
    eta: Float[Array, ""], kappas: Float[Array, " t"], lipschitz: tuple[Array, Array, Array], size: Float[Array, ""]
) -> Float[Array, "form t"]:
    """The bounds on the ratio of successive norms of R: printed and corrected, and with the coefficients' changes left out."""
    a, b, c = lipschitz
    change = jnp.stack([a + count * b * c * jnp.square(size) for count in (1, 2)] + [jnp.zeros_like(a)])
    return 1 - eta * (kappas - change[:, None])


def remainder(a: Float[Array, "m n"], inputs: Float[Array, "N n"], rank: int) -> Float[Array, "m n"]:
    r"""Where the gradient ends: :math:`A (I - \Pi)`, with :math:`\Pi` the projection on the inputs' span (``rank`` dimensions).

    :math:`S` vanishes on the W with :math:`W f_i = 0` for all i, so that this part of A is felt by no weight.
    """
    span = linalg.svd(inputs)[2][:rank]
    return a - a @ span.T @ span
