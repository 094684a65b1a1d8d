r"""Softmax collapse: the precision at which it sets in, the derivative of the loss in the scale of the weights, StableMax.

When the cross-entropy of a sample is exactly zero in floating-point numbers of t significant bits.

The loss is :math:`\ln(1 + S)` with :math:`S = \sum_{c \ne y} e^{z_c - z_y}`. The sum 1 + S rounds to one if
:math:`S < 2^{-t}`; and it cannot round to one if a single term exceeds :math:`2^{-t}`. In between, the order of the summation
decides. The derivative by the right logit, minus one plus its probability, is then exactly zero as well.

Source: arXiv:2501.04697, section 3 (softmax collapse); the two bounds follow from rounding to nearest. Letters: n samples, p
classes.

The derivative of the loss in the scale of the weights, and the probabilities of StableMax, in closed form.

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
import numpy as np
from jaxtyping import Array, Bool, Float, Int

SIGNIFICANT = {"float16": 11, "float32": 24, "float64": 53}  # bits of the significand, the hidden one included
SMALLEST = {"float16": -24, "float32": -149, "float64": -1074}  # exponent of the smallest positive number


def terms(z: Float[Array, "n p"], answers: Int[Array, " n"]) -> Float[Array, "n p"]:
    """Every class's exponential over that of the right class, which has none."""
    right = jnp.take_along_axis(z, answers[:, None], 1)
    return jnp.where(jnp.arange(z.shape[1]) == answers[:, None], 0, jnp.exp(z - right))


def certain(z: Float[Array, "n p"], answers: Int[Array, " n"], kind: str, fewer: int = 0) -> Bool[Array, " n"]:
    """Samples whose loss is zero in whatever order their terms are added; with so many bits fewer, a rival."""
    return jnp.sum(terms(z, answers), 1) < 2.0 ** (fewer - SIGNIFICANT[kind])


def possible(z: Float[Array, "n p"], answers: Int[Array, " n"], kind: str, fewer: int = 0) -> Bool[Array, " n"]:
    """Samples whose loss is zero in some order; with so many bits fewer, a rival."""
    return jnp.all(terms(z, answers) <= 2.0 ** (fewer - SIGNIFICANT[kind]), 1)


def underflow(z: Float[Array, "n p"], answers: Int[Array, " n"], kind: str) -> Bool[Array, " n"]:
    """Samples all of whose wrong exponentials are below the smallest positive number: a rival."""
    right = jnp.take_along_axis(z, answers[:, None], 1)
    wrong = jnp.arange(z.shape[1]) != answers[:, None]
    return jnp.all(jnp.where(wrong, z - right, -jnp.inf) < SMALLEST[kind] * np.log(2), 1)


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
