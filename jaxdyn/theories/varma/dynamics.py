r"""How large the outputs of a network are for the norm of its weights, and the amount of data at which two ways are as efficient.

A network that is homogeneous of degree 3 in its weights, as one with squares and no biases is, has the efficiency

.. math:: e = \frac1n \sum_i \frac{z_{i,y_i} - \max_{c \ne y_i} z_{i,c}}{\|\theta\|^3}

which does not change with its scale. Weight decay prefers the more efficient circuit. Memorising n labels costs more the larger n
is; generalising costs the same for all n: they cross at a critical n. Source: arXiv:2309.02390, section 3. Letters: z outputs,
theta all weights, n pairs.
Departure: the paper's efficiency is the mean logit of cross-entropy networks over the norm of their weights.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


def efficiency(
    outputs: Float[Array, "... c"], labels: Int[Array, "..."], only: Bool[Array, "..."], weights: object
) -> Float[Array, ""]:
    """Mean margin of the samples in ``only``, over the cube of the norm of all weights (a pytree)."""
    right = labels[..., None] == jnp.arange(outputs.shape[-1])
    margin = jnp.sum(jnp.where(right, outputs, 0), -1) - jnp.max(jnp.where(right, -jnp.inf, outputs), -1)
    size = jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree.leaves(weights)))
    return jnp.sum(jnp.where(only, margin, 0)) / jnp.sum(only) / size**3


def crossing(share: Float[np.ndarray, " s"], falling: Float[np.ndarray, " s"], level: float) -> float:
    """The share at which a falling curve reaches a level, by interpolation of both logarithms; an end if it does not."""
    return float(np.exp(np.interp(-np.log(level), -np.log(falling), np.log(share))))


def half(share: Float[np.ndarray, " s"], accuracy: Float[np.ndarray, " s"]) -> float:
    """The share from which an accuracy that rises with it is above one half, by interpolation; NaN if there is none."""
    risen = np.maximum.accumulate(accuracy)
    if not risen[0] <= 0.5 <= risen[-1]:
        return float("nan")
    at = int(np.argmax(risen >= 0.5))
    if at == 0:
        return float(share[0])
    part = (0.5 - risen[at - 1]) / (risen[at] - risen[at - 1])
    return float(share[at - 1] + part * (share[at] - share[at - 1]))
