"""Factorisations and linear systems for batches, one matrix after another; and a product whose gradient is fast.

The functions of ``jnp.linalg`` under the same names, with leading batch axes or under ``vmap``. On CPUs those hand the matrices of
a batch to the thread pool that they themselves run on, and wait there: a program that has as many batched factorisations under way
as there are threads (two, on a small machine) deadlocks (JAX 0.10). A single matrix is factorised in place, so here batches
are loops. Trials use these; ``norm``, ``det`` and products have no such fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Inexact

__all__ = ["dense", "eigh", "eigvalsh", "inv", "lstsq", "qr", "singular_values", "solve", "svd"]


def _one_by_one(function: Callable[..., Any], *arrays: Inexact[Array, "..."]) -> Any:
    """The function of a matrix (and a right-hand side), over their common leading axes if there are any."""
    function = sequential_vmap(function)
    for _ in range(arrays[0].ndim - 2):
        function = jax.vmap(function)
    return function(*arrays)


def eigh(a: Inexact[Array, "*batch n n"]) -> tuple[Inexact[Array, "*batch n"], Inexact[Array, "*batch n n"]]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of Hermitian matrices."""
    values, vectors = _one_by_one(lambda x: tuple(jnp.linalg.eigh(x)), a)
    return values, vectors


def eigvalsh(a: Inexact[Array, "*batch n n"]) -> Inexact[Array, "*batch n"]:
    """Eigenvalues of Hermitian matrices, in ascending order."""
    return _one_by_one(lambda x: jnp.linalg.eigvalsh(x), a)


def svd(
    a: Inexact[Array, "*batch m n"],
) -> tuple[Inexact[Array, "*batch m k"], Inexact[Array, "*batch k"], Inexact[Array, "*batch k n"]]:
    """The thin singular value decomposition, U, s and the adjoint of V; k is the smaller side."""
    u, s, vt = _one_by_one(lambda x: tuple(jnp.linalg.svd(x, full_matrices=False)), a)
    return u, s, vt


def singular_values(a: Inexact[Array, "*batch m n"]) -> Inexact[Array, "*batch k"]:
    """Singular values, in descending order."""
    return _one_by_one(lambda x: jnp.linalg.svd(x, compute_uv=False), a)


def qr(a: Inexact[Array, "*batch m n"]) -> tuple[Inexact[Array, "*batch m k"], Inexact[Array, "*batch k n"]]:
    """The thin QR factorisation."""
    q, r = _one_by_one(lambda x: tuple(jnp.linalg.qr(x)), a)
    return q, r


def solve(a: Inexact[Array, "*batch n n"], b: Inexact[Array, "*batch n ..."]) -> Inexact[Array, "*batch n ..."]:
    """A^{-1} b; the right side is a matrix or a vector."""
    return _one_by_one(lambda x, y: jnp.linalg.solve(x, y), a, b)


def inv(a: Inexact[Array, "*batch n n"]) -> Inexact[Array, "*batch n n"]:
    """A^{-1}."""
    return _one_by_one(lambda x: jnp.linalg.inv(x), a)


def lstsq(a: Inexact[Array, "*batch m n"], b: Inexact[Array, "*batch m k"], rcond: float) -> Inexact[Array, "*batch n k"]:
    """The least-squares solution of least norm; singular values below ``rcond`` of the largest are taken for zero."""
    return _one_by_one(lambda x, y: jnp.linalg.lstsq(x, y, rcond=rcond)[0], a, b)


@jax.custom_vjp
def dense(x: Inexact[Array, "*batch m"], w: Inexact[Array, "m n"]) -> Inexact[Array, "*batch n"]:
    r"""The product :math:`x w` of a layer, for training on CPUs: its gradient by w is made as :math:`x^\top g`.

    Automatic differentiation makes :math:`(g^\top x)^\top`, for which XLA (JAX 0.10) rearranges both factors number by number: a
    layer's values and gradients take twice as long. Give it whole batches: under a ``vmap`` over examples every one of them gets a
    gradient of its own. It has no forward mode.
    """
    return x @ w


def _dense_forward(x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ w, (x, w)


def _dense_backward(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = kept
    return (g @ w.T).astype(x.dtype), jnp.einsum("...m,...n->mn", x, g).astype(w.dtype)


dense.defvjp(_dense_forward, _dense_backward)
