r"""The unconstrained-features model, whose features are free parameters, with weight decay on features and classifier.

.. math:: L(W, H) = \sum_k \pi_k \operatorname{mean}_{i \in k} \Bigl[\operatorname{CE}(W h_i, k) + \tfrac{K\lambda}{2}
   \|h_i\|^2\Bigr] + \tfrac{\lambda}{2} \|W\|^2

with class weights :math:`\pi_k`, 1/K for classes of equal size. Classes out of use have no logit.
Letters: K classes, m features each, d dimensions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Free(NamedTuple):
    """Classifier and features."""

    w: Float[Array, "K d"]
    h: Float[Array, "K m d"]


def logits(p: Free, used: Bool[Array, " K"]) -> Float[Array, "K m K"]:
    """Of every feature."""
    return jnp.where(used, p.h @ p.w.T, -1e30)


def loss(p: Free, weight: Float[Array, " K"], used: Bool[Array, " K"], decay: Any) -> Float[Array, ""]:
    """Weighted cross-entropy with weight decay."""
    right = jnp.diagonal(jax.nn.log_softmax(logits(p, used)), axis1=0, axis2=2)  # (m, K)
    each = -jnp.mean(right, 0) + jnp.sum(used) * decay / 2 * jnp.mean(jnp.sum(p.h * p.h, -1), -1)
    return jnp.sum(jnp.where(used, weight * each, 0)) + decay / 2 * jnp.sum(p.w * p.w)
