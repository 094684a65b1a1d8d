r"""The minimum of the unconstrained-features model with weight decay, for K classes of equal size.

.. math:: L(W, H) = \frac1K \sum_k \operatorname{mean}_{i \in k} \Bigl[\operatorname{CE}(W h_i, k) + \tfrac{K\lambda}{2}
   \|h_i\|^2\Bigr] + \tfrac{\lambda}{2} \|W\|^2

With d >= K - 1 the features of a class coincide, class means and rows of W are one regular simplex, and the logits are
:math:`c\,(I - 11^\top/K)`. The least :math:`\frac\lambda2 (\|W\|^2 + \|H\|^2)` of a product of logits is :math:`\lambda` times
its nuclear norm :math:`c (K - 1)`, so that c minimises :math:`\ln(1 + (K - 1) e^{-c}) + \lambda c (K - 1)`:

.. math:: c = \ln(1/\lambda - K + 1), \qquad \|w_k\|^2 = \|h_k\|^2 = c\,(K - 1)/K

for :math:`\lambda < 1/K`; above it, everything is zero.
Source: derived; arXiv:2008.08186 for the shape. Letters: K classes.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float


def gap(classes: Any, decay: Any) -> Float[Array, ""]:
    """c, by which the right logit exceeds all others."""
    return jnp.log(jnp.maximum(1 / decay - classes + 1, 1.0))


def size(classes: Any, decay: Any) -> Float[Array, ""]:
    """Squared length of a class mean, and of a row of W."""
    return gap(classes, decay) * (classes - 1) / classes


def least(classes: Any, decay: Any) -> Float[Array, ""]:
    """The loss at the minimum."""
    c = gap(classes, decay)
    return jnp.log1p((classes - 1) * jnp.exp(-c)) + decay * c * (classes - 1)


def cosine(classes: Any) -> Float[Array, ""]:
    """Between any two centred class means: -1/(K - 1)."""
    return -1 / (jnp.asarray(classes, jnp.float64) - 1)
