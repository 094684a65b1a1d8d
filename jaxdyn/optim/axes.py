"""Which axes of a parameter are the rows and the columns of a matrix, and which number matrices of a batch.

A layer-stacked weight [L, m, n] is a batch of L matrices; a weight split into heads [d, H, e] is one matrix of d rows and H e
columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxdyn.errors import UsageError

__all__ = ["EXCLUDED", "Dims", "Matrix", "as_matrices", "as_parameter", "hidden_matrices", "matrix_shape", "specs"]

EXCLUDED = ("embed", "head", "norm", "position", "bias", "gain", "shift")


class Matrix(NamedTuple):
    """Axes of the rows and of the columns, of several the last varying fastest; all others are batches."""

    rows: tuple[int, ...] = (-2,)
    cols: tuple[int, ...] = (-1,)


Dims = Callable[[PyTree], PyTree] | PyTree
"""A tree like the parameters with :class:`Matrix` or None at its leaves, or a function of the parameters that returns one."""


def hidden_matrices(params: PyTree) -> PyTree:
    """The last two axes of every parameter that has two, but None for embeddings, read-outs, norms, positions and biases.

    They are recognised by their names (:data:`EXCLUDED`). Source: arXiv:2403.03507, section 5: attention and MLP matrices alone are
    projected.
    """

    def spec(path: tuple[Any, ...], x: Any) -> Matrix | None:
        # a read-out is called head; heads of an attention are none
        names = [str(getattr(part, "key", getattr(part, "name", ""))).lower() for part in path]
        excluded = any(word in name for name in names for word in EXCLUDED if not (word == "head" and "heads" in name))
        return None if excluded or x.ndim < 2 else Matrix()

    return jax.tree_util.tree_map_with_path(spec, params)


def specs(dims: Dims, params: PyTree) -> list[Matrix | None]:
    """The specification of every leaf of the parameters, in their order.

    Raises:
        UsageError: for axes that a parameter does not have, or that are named twice.
    """
    tree = dims(params) if callable(dims) else dims
    leaves, treedef = jax.tree.flatten(params)
    given = [tree] * len(leaves) if isinstance(tree, Matrix) else treedef.flatten_up_to(tree)
    for spec, leaf in zip(given, leaves, strict=True):
        if spec is not None:
            _order(spec, leaf.ndim)
    return given


def _order(spec: Matrix, ndim: int) -> tuple[tuple[int, ...], int]:
    """Order of all axes, batches first, then rows, then columns; and how many batches there are."""
    if any(not -ndim <= axis < ndim for axis in spec.rows + spec.cols):
        raise UsageError(f"{spec} is not allowed for a parameter with {ndim} axes")
    rows, cols = tuple(a % ndim for a in spec.rows), tuple(a % ndim for a in spec.cols)
    if not rows or not cols or len(set(rows + cols)) < len(rows + cols):
        raise UsageError(f"{spec} is not allowed: rows and columns have at least one axis each, and none in common")
    batch = tuple(a for a in range(ndim) if a not in rows + cols)
    return batch + rows + cols, len(batch)


def matrix_shape(spec: Matrix, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape [*batch, m, n] of a parameter's matrices."""
    order, batch = _order(spec, len(shape))
    sizes = [shape[a] for a in order]
    rows = batch + len(spec.rows)
    return (*sizes[:batch], math.prod(sizes[batch:rows]), math.prod(sizes[rows:]))


def as_matrices(spec: Matrix, x: Float[Array, "..."]) -> Float[Array, "*batch m n"]:
    """The parameter as a batch of matrices."""
    return jnp.transpose(x, _order(spec, x.ndim)[0]).reshape(matrix_shape(spec, x.shape))


def as_parameter(spec: Matrix, matrices: Float[Array, "*batch m n"], shape: tuple[int, ...]) -> Float[Array, "..."]:
    """The inverse of :func:`as_matrices`."""
    order, _ = _order(spec, len(shape))
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return jnp.transpose(matrices.reshape([shape[a] for a in order]), inverse)
