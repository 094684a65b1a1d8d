r"""When the cross-entropy of a sample is exactly zero in floating-point numbers of t significant bits.

The loss is :math:`\ln(1 + S)` with :math:`S = \sum_{c \ne y} e^{z_c - z_y}`. The sum 1 + S rounds to one if
:math:`S < 2^{-t}`; and it cannot round to one if a single term exceeds :math:`2^{-t}`. In between, the order of the summation
decides. The derivative by the right logit, minus one plus its probability, is then exactly zero as well.

Source: arXiv:2501.04697, section 3 (softmax collapse); the two bounds follow from rounding to nearest. Letters: n samples, p
classes.
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
