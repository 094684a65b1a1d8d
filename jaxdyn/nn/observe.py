"""Observables of weights: how far from orthogonal a set of vectors is, and how far random directions are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int, Real

from jaxdyn.errors import UsageError, shown

__all__ = ["mean_cosine", "random_cosine", "unit", "unit_gram_error"]

ROWS = 1024  # rows of the Gram matrix held at once


def unit(vectors: Real[Array, "n d"]) -> Float[Array, "n d"]:
    """Rows of length one; a zero row stays zero."""
    norm = jnp.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / jnp.where(norm == 0, 1, norm)


def _over_gram(u: Float[Array, "n d"], power: int) -> Float[Array, ""]:
    """Sum of |u_i . u_j|^power over ordered pairs i != j, by blocks of rows, so that no n x n matrix is held."""
    n, d = u.shape
    blocks = -(-n // min(n, ROWS))
    rows = -(-n // blocks)
    padded = jnp.concatenate([u, jnp.zeros((blocks * rows - n, d), u.dtype)]).reshape(blocks, rows, d)
    numbers = jnp.arange(blocks * rows, dtype=jnp.int32).reshape(blocks, rows, 1)

    def one(block: tuple[Float[Array, "rows d"], Int[Array, "rows 1"]]) -> Float[Array, ""]:
        other = block[1] != jnp.arange(n, dtype=jnp.int32)  # without the diagonal: subtracted later, it would leave its rounding
        return jnp.sum(jnp.where(other, jnp.abs(block[0] @ u.T), 0) ** power)

    return jnp.sum(jax.lax.map(one, (padded, numbers)))


def mean_cosine(vectors: Real[Array, "n d"]) -> Float[Array, ""]:
    r"""Mean absolute cosine over pairs of distinct rows.

    For random directions it is :func:`random_cosine`. A row of zeros counts as orthogonal to all others.
    NaN if a row has one. Source: the orthogonality figure of arXiv:2310.00535 (appendix); it shows absolute cosines.

    Raises:
        UsageError: unless the vectors are the rows of a real matrix, two or more.
    """
    vectors = _matrix(vectors, 2)
    n = vectors.shape[0]
    return _over_gram(unit(vectors), 1) / n / (n - 1)  # one after the other: the product of two may not fit in 32 bits


def random_cosine(d: float | Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Mean absolute cosine of two random directions, :math:`\Gamma(d/2) / (\sqrt\pi\,\Gamma((d+1)/2)) \approx \sqrt{2/(\pi d)}`.

    .0353 for d = 512; papers print the approximation, which is too small by the factor 1 - 1/(4d) and so on. Source: the cosine of
    two independent directions, one of them uniform on the sphere, has density proportional to :math:`(1-c^2)^{(d-3)/2}`.
    """
    d = jnp.asarray(d)
    return jnp.exp(gammaln(d / 2) - gammaln((d + 1) / 2)) * np.pi**-0.5


def unit_gram_error(vectors: Real[Array, "n d"]) -> Float[Array, ""]:
    r"""Frobenius norm of :math:`\hat U \hat U^\top - I` for rows of length one; zero if and only if they are orthonormal.

    Raises:
        UsageError: unless the vectors are the rows of a real matrix, one or more.
    """
    u = unit(_matrix(vectors, 1))
    return jnp.sqrt(_over_gram(u, 2) + jnp.sum(jnp.square(1 - jnp.sum(jnp.square(u), 1))))


def _matrix(vectors: Real[Array, "n d"], least: int) -> Real[Array, "n d"]:
    """A real matrix of so many rows or more, in float32 at least: what is said of it is a sum of many products."""
    vectors = jnp.asarray(vectors)
    if vectors.ndim != 2 or vectors.shape[0] < least or jnp.iscomplexobj(vectors):
        raise UsageError(f"vectors={shown(vectors)} is not allowed: it is a real matrix with {least} rows or more")
    return vectors.astype(jnp.promote_types(vectors.dtype, jnp.float32)) if jnp.issubdtype(vectors.dtype, jnp.floating) else vectors
