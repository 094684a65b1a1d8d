"""Factorisations and linear systems for batches, on CPU one matrix after another; a product whose gradient is fast; its cost.

The functions of ``jnp.linalg`` under the same names, with leading batch axes or under ``vmap``. On CPUs those hand the matrices of
a batch to the thread pool that they themselves run on, and wait there: a program that has as many batched factorisations under way
as there are threads (two, on a small machine) deadlocks (JAX 0.10). A single matrix is factorised in place, so there batches
are loops. Other platforms get the batch: their libraries have algorithms for many small matrices at once, on GPUs that of Jacobi
for sides of at most 32. Trials use these; ``norm``, ``det`` and products have no such fault.

Whole numbers are taken for floats, and narrow floats (bfloat16, float16) are calculated with in float32, in which the result is
rounded to their dtype. A matrix with NaN or infinity has no eigenvalues, singular values or least-squares solution: all are NaN.
LAPACK leaves some numbers as they are, and its singular value decomposition may never end.

Factorisations and systems have derivatives along a direction (``jax.jvp``), but no gradient, since a loop over a batch has none:
``jax.grad`` needs ``jnp.linalg``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Inexact, Num

from jaxdyn.errors import UsageError, number, shown

__all__ = [
    "dense",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_vector",
    "multiplications",
    "qr",
    "singular_values",
    "solve",
    "svd",
    "vector_matrix",
]

PARTS, LARGE = 4, 1 << 18  # of a matrix that one vector is multiplied by; entries from which on parts are faster


def _one_by_one(function: Callable[..., Any], *arrays: Num[Array, "..."]) -> Any:
    """The function of a matrix (and a right-hand side), over their common leading axes if there are any."""
    dtype = jnp.result_type(*arrays)
    narrow = jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 32
    function = functools.partial(jax.lax.platform_dependent, cpu=sequential_vmap(function), default=function)
    for _ in range(arrays[0].ndim - 2):
        function = jax.vmap(function)
    if not narrow:
        return function(*arrays)
    return jax.tree.map(lambda x: x.astype(dtype), function(*(x.astype(jnp.float32) for x in arrays)))


def _finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a matrix, NaN if that has an entry that is not finite: LAPACK may never end on it."""

    def guarded(a: Array, *more: Array) -> Any:
        fine = jnp.all(jnp.isfinite(a))
        return jax.tree.map(lambda x: jnp.where(fine, x, jnp.nan), function(jnp.where(fine, a, 0), *more))

    return guarded


def _matrices(a: Num[Array, "*batch m n"], square: bool = False) -> Num[Array, "*batch m n"]:
    """An array of matrices.

    Raises:
        UsageError: for an array of other shapes.
    """
    a = jnp.asarray(a)
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise UsageError(f"a={shown(a)} is not allowed: it is a {'square ' if square else ''}matrix, or an array of them")
    return a


def _right_side(a: Num[Array, "*batch m n"], b: Num[Array, "*batch m ..."]) -> Num[Array, "*batch m ..."]:
    """The right-hand sides of systems, a vector or a matrix each.

    Raises:
        UsageError: unless there is one for each matrix, with its number of rows.
    """
    b = jnp.asarray(b)
    if b.shape[: a.ndim - 1] != a.shape[:-1] or b.ndim > a.ndim:
        raise UsageError(
            f"b={shown(b)} is not allowed with a={shown(a)}: it has a vector or a matrix of {a.shape[-2]} rows for each"
        )
    return b


def eigh(a: Num[Array, "*batch n n"]) -> tuple[Inexact[Array, "*batch n"], Inexact[Array, "*batch n n"]]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of Hermitian matrices (of the Hermitian part of others).

    Raises:
        UsageError: for an array that is not of square matrices.
    """
    values, vectors = _one_by_one(_finite(lambda x: tuple(jnp.linalg.eigh(x))), _matrices(a, square=True))
    return values, vectors


def eigvalsh(a: Num[Array, "*batch n n"]) -> Inexact[Array, "*batch n"]:
    """Eigenvalues of Hermitian matrices, in ascending order (of the Hermitian part of others).

    Raises:
        UsageError: for an array that is not of square matrices.
    """
    return _one_by_one(_finite(lambda x: jnp.linalg.eigvalsh(x)), _matrices(a, square=True))


def svd(
    a: Num[Array, "*batch m n"],
) -> tuple[Inexact[Array, "*batch m k"], Inexact[Array, "*batch k"], Inexact[Array, "*batch k n"]]:
    """The thin singular value decomposition, U, s and the adjoint of V; k is the smaller side.

    Raises:
        UsageError: for an array that is not of matrices.
    """
    u, s, vt = _one_by_one(_finite(lambda x: tuple(jnp.linalg.svd(x, full_matrices=False))), _matrices(a))
    return u, s, vt


def singular_values(a: Num[Array, "*batch m n"]) -> Inexact[Array, "*batch k"]:
    """Singular values, in descending order.

    Raises:
        UsageError: for an array that is not of matrices.
    """
    return _one_by_one(_finite(lambda x: jnp.linalg.svd(x, compute_uv=False)), _matrices(a))


def qr(a: Num[Array, "*batch m n"]) -> tuple[Inexact[Array, "*batch m k"], Inexact[Array, "*batch k n"]]:
    """The thin QR factorisation.

    Raises:
        UsageError: for an array that is not of matrices.
    """
    q, r = _one_by_one(lambda x: tuple(jnp.linalg.qr(x)), _matrices(a))
    return q, r


def solve(a: Num[Array, "*batch n n"], b: Num[Array, "*batch n ..."]) -> Inexact[Array, "*batch n ..."]:
    """A^{-1} b; the right side is a matrix or a vector. Not finite if a matrix is singular.

    Raises:
        UsageError: for an array that is not of square matrices, and right sides that are not one for each.
    """
    a = _matrices(a, square=True)
    return _one_by_one(lambda x, y: jnp.linalg.solve(x, y), a, _right_side(a, b))


def inv(a: Num[Array, "*batch n n"]) -> Inexact[Array, "*batch n n"]:
    """A^{-1}. Not finite if a matrix is singular.

    Raises:
        UsageError: for an array that is not of square matrices.
    """
    return _one_by_one(lambda x: jnp.linalg.inv(x), _matrices(a, square=True))


def lstsq(a: Num[Array, "*batch m n"], b: Num[Array, "*batch m k"], rcond: float) -> Inexact[Array, "*batch n k"]:
    """The least-squares solution of least norm; singular values below ``rcond`` of the largest are taken for zero.

    Raises:
        UsageError: for an array that is not of matrices, right sides that are not one for each, and an ``rcond`` outside [0, 1].
    """
    a, rcond = _matrices(a), number("rcond", rcond, least=0, most=1)
    return _one_by_one(_finite(lambda x, y: jnp.linalg.lstsq(x, y, rcond=rcond)[0]), a, _right_side(a, b))


def vector_matrix(x: Inexact[Array, " m"], w: Inexact[Array, "m n"]) -> Inexact[Array, " n"]:
    """The product x w, for decoding on CPUs: XLA (JAX 0.10) reads a matrix by one thread, the parts of a large one by all."""
    if (parts := _parts(w)) == 1:
        return dense(x, w)
    return jnp.sum(jnp.einsum("pm,pmn->pn", x.reshape(parts, -1), w.reshape(parts, -1, w.shape[1])), 0)


def matrix_vector(w: Inexact[Array, "n m"], x: Inexact[Array, " m"]) -> Inexact[Array, " n"]:
    """The product w x, as :func:`vector_matrix`."""
    if (parts := _parts(w)) == 1:
        return dense(x, w.T)
    return jnp.einsum("pnm,pm->pn", w.reshape(parts, -1, x.size), jnp.broadcast_to(x, (parts, x.size))).reshape(-1)


def _parts(w: Inexact[Array, "m n"]) -> int:
    """In how many parts of equally many rows a matrix is read."""
    return next((parts for parts in (PARTS, 2) if w.shape[0] % parts == 0), 1) if w.size >= LARGE else 1


def dense(x: Num[Array, "*batch m"], w: Num[Array, "m n"]) -> Inexact[Array, "*batch n"]:
    r"""The product :math:`x w` of a layer, for training on CPUs: its gradient by w is made as :math:`x^\top g`.

    Automatic differentiation makes :math:`(g^\top x)^\top`, for which XLA (JAX 0.10) rearranges both factors number by number: a
    layer's values and gradients take twice as long. Give it whole batches: under a ``vmap`` over examples every one of them gets a
    gradient of its own. It has no forward mode.

    Raises:
        UsageError: unless w is a matrix with a row for each entry of x's last axis, and one of them has a dtype of floats.
    """
    fit = jnp.ndim(w) == 2 and jnp.ndim(x) >= 1 and jnp.shape(x)[-1] == jnp.shape(w)[0]
    if not fit or not jnp.issubdtype(jnp.result_type(x, w), jnp.inexact):
        raise UsageError(
            f"x={shown(x)}, w={shown(w)} are not allowed: w is a matrix of floats with a row for each entry of x's last axis"
        )
    return _dense(x, w)


@jax.custom_vjp
def _dense(x: Array, w: Array) -> Array:
    return x @ w


def _dense_forward(x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ w, (x, w)


def _dense_backward(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = kept
    return (g @ w.T).astype(x.dtype), jnp.einsum("...m,...n->mn", x, g).astype(w.dtype)


_dense.defvjp(_dense_forward, _dense_backward)


def multiplications(program: jax.extend.core.Jaxpr) -> int:
    """Multiplications of all matrix products and convolutions in a program, those in a loop of known length as often as it runs."""
    count = 0
    for equation in program.eqns:
        sizes, made = ([getattr(v.aval, "shape", ()) for v in ends] for ends in (equation.invars, equation.outvars))
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            count += math.prod(sizes[0][axis] for axis in contracted) * math.prod(made[0])
        if equation.primitive.name == "conv_general_dilated":
            features = sizes[1][equation.params["dimension_numbers"].rhs_spec[0]]
            count += math.prod(sizes[1]) // features * math.prod(made[0])
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        count += times * sum(multiplications(inner) for inner in jax.extend.core.jaxprs_in_params(equation.params))
    return count
