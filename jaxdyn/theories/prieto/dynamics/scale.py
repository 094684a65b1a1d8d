r"""The derivative of the loss in the scale of the weights, and the probabilities of StableMax, in closed form.

A network without biases is homogeneous in each of its L layers, :math:`f(\ldots, cW_l, \ldots) = c f`, and of degree L in all
weights. So

.. math:: \langle W_l, \nabla_{W_l} \ell \rangle = \sum_c z_c\,\frac{\partial \ell}{\partial z_c}

for each of its layers: minus the gradient points along the weights as far as larger logits lower the loss. For the softmax
:math:`\partial\ell/\partial z_c = q_c - \delta_{cy}`; for StableMax, with :math:`q_c = s(z_c) / \sum_d s(z_d)`,
:math:`s(z) = z + 1` for :math:`z \ge 0` and :math:`1/(1 - z)` below, this is multiplied by :math:`s'/s = 1/(1 + |z_c|)`.

Source: arXiv:2501.04697, sections 3 and 4. Letters: n samples, p classes.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def probabilities(z: Float[Array, "n p"], stable: bool) -> Float[Array, "n p"]:
    """Softmax or StableMax of the logits, from their definitions."""
    rise = jnp.where(z >= 0, z + 1, 1 / (1 - jnp.minimum(z, 0))) if stable else jnp.exp(z)
    return rise / jnp.sum(rise, 1, keepdims=True)


def derivative(z: Float[Array, "n p"], answers: Int[Array, " n"], stable: bool) -> Float[Array, "n p"]:
    """Derivative of every sample's cross-entropy by its logits."""
    right = (jnp.arange(z.shape[1]) == answers[:, None]).astype(z.dtype)
    return (probabilities(z, stable) - right) / (1 + jnp.abs(z) if stable else 1)


def along_weights(z: Float[Array, "n p"], answers: Int[Array, " n"], stable: bool) -> Float[Array, ""]:
    """Inner product of a layer's weights with the gradient of the mean loss by them, the same for every layer."""
    return jnp.mean(jnp.sum(z * derivative(z, answers, stable), 1))
