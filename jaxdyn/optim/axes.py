"""Which axes of a parameter are the rows and the columns of a matrix, and which number matrices of a batch.

A layer-stacked weight [L, m, n] is a batch of L matrices; a weight split into heads [d, H, e] is one matrix of d rows and H e
columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxdyn.errors import UsageError

__all__ = ["EXCLUDED", "Dims", "Matrix", "as_matrices", "as_parameter", "hidden_matrices", "matrix_shape", "specs"]

EXCLUDED = frozenset(
    "embed embedder embedding embeddings unembed unembedding head norm norms normalization layernorm rmsnorm batchnorm groupnorm "
    "position positions positional bias biases gain gains shift shifts".split()
)


class Matrix(NamedTuple):
    """Axes of the rows and of the columns, of several the last varying fastest; all others are batches."""

    rows: tuple[int, ...] = (-2,)
    cols: tuple[int, ...] = (-1,)


Dims = Callable[[PyTree], PyTree] | PyTree
"""A tree like the parameters with :class:`Matrix` or None at its leaves, or a function of the parameters that returns one."""


def hidden_matrices(params: PyTree) -> PyTree:
    """The last two axes of every parameter that has two, but None for embeddings, read-outs, norms, positions and biases.

    They are recognised by whole words of their path, which are those of :data:`EXCLUDED`: ``lm_head``, ``LayerNorm_0`` and
    ``norm1`` have one, ``enormous``, ``heads`` and ``MultiHeadDotProductAttention_0`` ("multi head" is one word) have none. Other
    names need a tree of their own. Source: arXiv:2403.03507, section 5: attention and MLP matrices alone are projected.
    """

    def spec(path: tuple[Any, ...], x: Any) -> Matrix | None:
        words = {word for part in path for word in _words(str(getattr(part, "key", getattr(part, "name", ""))))}
        return None if x.ndim < 2 or words & EXCLUDED else Matrix()

    return jax.tree_util.tree_map_with_path(spec, params)


def _words(name: str) -> list[str]:
    """The words of a name in lower case, without numbers: those of LayerNorm_0 and layer_norm are layer and norm."""
    joined = re.sub(r"multi[_-]?head", "multihead", name, flags=re.IGNORECASE)
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", joined)]


def specs(dims: Dims, params: PyTree) -> list[Matrix | None]:
    """The specification of every leaf of the parameters, in their order; None for a leaf without numbers.

    Raises:
        UsageError: for a tree that is not like the parameters, for axes that a parameter does not have, or that are named twice.
    """
    tree = dims(params) if callable(dims) else dims
    leaves, treedef = jax.tree.flatten(params)
    try:
        given = [tree] * len(leaves) if isinstance(tree, Matrix) else treedef.flatten_up_to(tree)
    except ValueError:
        raise UsageError("dims is not allowed: it is a tree like the parameters, with a Matrix or None at each leaf") from None
    for spec, leaf in zip(given, leaves, strict=True):
        if spec is not None:
            _order(spec, leaf.ndim)
    return [None if leaf.size == 0 else spec for spec, leaf in zip(given, leaves, strict=True)]


def _order(spec: Matrix, ndim: int) -> tuple[tuple[int, ...], int]:
    """Order of all axes, batches first, then rows, then columns; and how many batches there are."""
    named = isinstance(spec, Matrix) and all(isinstance(axes, tuple) for axes in spec)
    if not named or any(isinstance(axis, bool) or not isinstance(axis, int | np.integer) for axis in spec.rows + spec.cols):
        raise UsageError(f"{spec} is not allowed: a leaf of dims is None or a Matrix, whose rows and columns are tuples of axes")
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
