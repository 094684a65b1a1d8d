r"""Scan & Snap in its original parameters: embeddings, queries and keys, values.

.. math:: b_t = \text{softmax}_t\!\left(\frac{u_{x_T}^\top W_Q W_K^\top u_{x_t}}{\sqrt d}\right), \qquad
          \tilde u_T = U^\top \text{LN}(X^\top b), \qquad \text{logits} = U W_V \tilde u_T

In (Y, Z) it is :math:`Y = U W_V^\top U^\top`, :math:`Z = U W_Q W_K^\top U^\top/\sqrt d`. Source: arXiv:2305.16380, section 3.
Letters: M tokens, d dimensions; the embeddings are fixed here. ``width`` of the d stored dimensions are in use: the others hold
zeros in U, so that runs with any width share one program.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.errors import UsageError
from jaxdyn.theories.snap import model

Scalar = int | float | Float[Array, ""]


class Weights(NamedTuple):
    """What is trained. With ``w_k`` fixed at the identity, ``w_q`` is the single matrix W = W_Q W_K^T."""

    w_v: Float[Array, "d d"]
    w_q: Float[Array, "d d"]
    w_k: Float[Array, "d d"]


def embeddings(key: PRNGKeyArray, tokens: int, dim: int, width: Scalar, orthonormal: bool | Bool[Array, ""]) -> Float[Array, "M d"]:
    """Random rows of length one in the first ``width`` dimensions: orthonormal (width >= M), or of independent directions.

    Raises:
        UsageError: fewer stored dimensions than tokens, of which orthonormal rows are made.
    """
    if dim < tokens:
        raise UsageError(f"dim={dim} is not allowed: {tokens} orthonormal embeddings need at least as many dimensions")
    normal = jax.random.normal(key, (tokens, dim), jnp.float64) * (jnp.arange(dim) < width)
    apart = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
    return jnp.where(orthonormal, linalg.qr(normal.T)[0].T, apart)


def rotation(key: PRNGKeyArray, dim: int, width: Scalar) -> Float[Array, "d d"]:
    """A random orthogonal matrix of the first ``width`` dimensions, zero elsewhere."""
    used = jnp.arange(dim) < width
    normal = jax.random.normal(key, (dim, dim), jnp.float64)
    block = jnp.where(used[:, None] & used, normal, jnp.where(~used[:, None] & ~used, jnp.eye(dim, dtype=normal.dtype), 0.0))
    return linalg.qr(block)[0] * used * used[:, None]


def decoder(weights: Weights, u: Float[Array, "M d"]) -> Float[Array, "M M"]:
    """Y = U W_V^T U^T."""
    return u @ weights.w_v.T @ u.T


def pair_logits(
    weights: Weights, u: Float[Array, "M d"], queries: Int[Array | np.ndarray, " R"], width: Scalar
) -> Float[Array, "R M"]:
    """Rows of Z = U W_Q W_K^T U^T / sqrt(d) for these query tokens."""
    return (u[queries] @ weights.w_q) @ (u @ weights.w_k).T / jnp.sqrt(width)


def logits(
    weights: Weights, u: Float[Array, "M d"], contexts: Float[Array, "n M"], queries: Int[Array, " n"], width: Scalar
) -> Float[Array, "n M"]:
    """Logits of the next token for contexts (laws or frequencies) and query tokens."""
    attended = model.attend(pair_logits(weights, u, queries, width), contexts)
    return (model.normalized(attended) @ u) @ weights.w_v.T @ u.T


def loss(
    weights: Weights, u: Float[Array, "M d"], task: model.Task, queries: Int[Array | np.ndarray, " R"], width: Scalar
) -> Float[Array, ""]:
    """The loss -J at infinite length; ``queries`` are the tokens of the task's query rows."""
    log_alpha = jax.nn.log_softmax(logits(weights, u, jnp.asarray(task.p), jnp.asarray(queries)[task.query], width))
    return -jnp.dot(task.weight, jnp.take_along_axis(log_alpha, jnp.asarray(task.label)[:, None], 1)[:, 0])
