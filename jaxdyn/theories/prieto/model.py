r"""The network of Prieto et al.: two operands modulo p, ReLU layers without biases, one output for each sum; and how it is trained.

Without biases the network is homogeneous: weights that are c times as large give :math:`c^3` times the logits with its three
matrices. StableMax is the softmax of :math:`\mathrm{sign}(z)\ln(1 + |z|)`. The orthogonal gradient of a matrix is what is left of
its gradient without the part along the matrix, rescaled to the gradient's norm.

Source: arXiv:2501.04697, sections 2 to 5, and the authors' code (no biases, start, rescaling). Letters: p modulus, m nodes of a
layer, n pairs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxdyn.linalg import dense

Weights = tuple[Float[Array, "_ _"], ...]  # every layer has its own sizes
Scalar = float | Float[Array, ""]


def init(key: PRNGKeyArray, modulus: int, nodes: int, dtype: str = "float32") -> Weights:
    """Three matrices, uniform within one over the root of the fan-in."""
    sizes = (2 * modulus, nodes, nodes, modulus)
    keys = jax.random.split(key, 3)
    draws = (jax.random.uniform(k, (i, o), jnp.float32, -1, 1) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True))
    return tuple((x / x.shape[0] ** 0.5).astype(dtype) for x in draws)


def pairs(modulus: int) -> tuple[Int[Array, " n"], Int[Array, " n"], Int[Array, " n"]]:
    """All pairs of operands, the second running fastest, and their sums modulo p."""
    a, b = (x.reshape(-1) for x in jnp.indices((modulus, modulus), jnp.int32))
    return a, b, (a + b) % modulus


def outputs(weights: Weights, a: Int[Array, " n"], b: Int[Array, " n"], shift: Scalar = 0.0) -> Float[Array, "n p"]:
    """The logits; ``shift`` is added to what enters a hidden node, a bias that breaks homogeneity."""
    first, second, last = weights
    hidden = jax.nn.relu(first[a] + first[last.shape[1] + b] + shift)
    return dense(jax.nn.relu(dense(hidden, second) + shift), last)


def signed_log(z: Float[Array, "n p"]) -> Float[Array, "n p"]:
    """The logits whose softmax is StableMax."""
    return jnp.where(z >= 0, jnp.log1p(jnp.maximum(z, 0)), -jnp.log1p(-jnp.minimum(z, 0)))


def losses(z: Float[Array, "n p"], answers: Int[Array, " n"]) -> Float[Array, " n"]:
    """Cross-entropy of every pair, in the precision of the logits."""
    return -jnp.take_along_axis(jax.nn.log_softmax(z), answers[:, None], 1)[:, 0]


def orthogonal(gradient: Float[Array, "r c"], along: Float[Array, "r c"]) -> Float[Array, "r c"]:
    """The gradient without its part along a matrix, rescaled to its norm."""
    left = gradient - along * (jnp.vdot(along, gradient) / jnp.vdot(along, along))
    return left * (jnp.linalg.norm(gradient) / jnp.maximum(jnp.linalg.norm(left), 1e-30))
