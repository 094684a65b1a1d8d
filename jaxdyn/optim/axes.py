"""Which axes of a parameter are the rows and the columns of a matrix, and which number matrices of a batch.

A layer-stacked weight [L, m, n] is a batch of L matrices; a weight split into heads [d, H, e] is one matrix of d rows and H e
columns.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxdyn.errors import UsageError
from jaxdyn.optim.trees import INJECTED

__all__ = [
    "EXCLUDED",
    "HEADS_IN",
    "HEADS_OUT",
    "Dims",
    "Matrix",
    "as_matrices",
    "as_parameter",
    "hidden_matrices",
    "matching",
    "matrix_shape",
    "place",
    "specs",
]

EXCLUDED = frozenset(
    "embed embedder embedding embeddings unembed unembedding head norm norms normalization layernorm rmsnorm batchnorm groupnorm "
    "position positions positional bias biases gain gains shift shifts sink sinks".split()
)


class Matrix(NamedTuple):
    """Axes of the rows and of the columns, of several the last varying fastest; all others are batches."""

    rows: tuple[int, ...] = (-2,)
    cols: tuple[int, ...] = (-1,)


HEADS_IN, HEADS_OUT = Matrix((-3,), (-2, -1)), Matrix((-3, -2), (-1,))
"""Weights split into heads: [d, H, e] of queries, keys and values, and [H, e, d] of the output."""

SPLIT = re.compile(r"(?:^|/)(?:MultiHeadDotProduct|MultiHead|Self)Attention_\d+/(query|key|value|out)/kernel$")

Dims: TypeAlias = Callable[[PyTree], PyTree] | PyTree
"""A tree like the parameters with :class:`Matrix` or None at its leaves, or a function of the parameters that returns one."""


def hidden_matrices(params: PyTree) -> PyTree:
    """The last two axes of every parameter that has two, but None for embeddings, read-outs, norms, positions and biases.

    They are recognised by whole words of their path, which are those of :data:`EXCLUDED`: ``lm_head``, ``LayerNorm_0`` and
    ``norm1`` have one, ``enormous``, ``heads`` and ``MultiHeadDotProductAttention_0`` ("multi head" is one word) have none. Other
    names, such as ``Dense_3`` of a read-out that was given none, need :func:`matching`; what is chosen is shown by
    :func:`jaxdyn.optim.memory.listing`. Kernels with heads of an attention that flax has named (``SelfAttention_0/query/kernel``,
    [d, H, e]) are one matrix; under other names they are taken for d matrices, from which nothing can be saved.
    Source: arXiv:2403.03507, section 5: attention and MLP matrices alone are projected.

    Raises:
        UsageError: for a count of steps, with which optax calls what it takes for a schedule.
    """
    _refuse_counts(params)

    def spec(path: tuple[Any, ...], x: Any) -> Matrix | None:
        name = place(path)
        if x.ndim < 2 or {word for part in name.split("/") for word in _words(part)} & EXCLUDED:
            return None
        split = SPLIT.search(name) if x.ndim > 2 else None
        return Matrix() if split is None else HEADS_OUT if split[1] == "out" else HEADS_IN

    return jax.tree_util.tree_map_with_path(spec, params)


def matching(choices: Mapping[str, Matrix | None], *, otherwise: Dims = None) -> Callable[[PyTree], PyTree]:
    """An explicit choice by the names of leaves: of the first pattern that fits, which matrices the leaf holds, or None.

    ``matching({"*/attn/out/kernel": HEADS_OUT, "*/attn/*/kernel": HEADS_IN, "*/mlp/*/kernel": Matrix()})``. A name is the path of
    the leaf joined by "/", as :func:`place` gives it; in a pattern * stands for any characters, "/" included.

    Args:
        choices: patterns in the order in which they are tried.
        otherwise: for leaves that no pattern fits: None, they are not projected, or e.g. :func:`hidden_matrices`.

    Raises:
        UsageError: when used, for a pattern that fits no leaf: it is misspelt, or of another network; and for a count of steps.
    """

    def dims(params: PyTree) -> PyTree:
        _refuse_counts(params)
        named, treedef = jax.tree_util.tree_flatten_with_path(params)
        names = [place(path) for path, _ in named]
        for pattern in choices:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
                raise UsageError(f"pattern {pattern!r} is not allowed: no leaf has such a name; names are {_some(names)}")
        rest = [None] * len(names) if otherwise is None else specs(otherwise, params)
        fitting = [
            next((c for p, c in choices.items() if fnmatch.fnmatchcase(name, p)), plain)
            for name, plain in zip(names, rest, strict=True)
        ]
        chosen = [None if x.ndim < 2 else c for c, (_, x) in zip(fitting, named, strict=True)]
        return jax.tree.unflatten(treedef, chosen)

    return dims


def _refuse_counts(params: PyTree) -> None:
    """Refuse a whole number without axes in place of the parameters: no matrix would be chosen, without a word."""
    if getattr(params, "ndim", None) == 0 and jnp.issubdtype(params.dtype, jnp.integer):
        raise UsageError(f"dims= is not allowed to be a schedule: it chooses matrices among parameters; {INJECTED}")


def place(path: tuple[Any, ...]) -> str:
    """The name of a leaf: keys and attributes of its path joined by "/", as flax, haiku and equinox name their parameters."""
    parts = [str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", part)))) for part in path]
    return "/".join(parts[:-1] if parts and parts[-1] == "value" and getattr(path[-1], "name", None) == "value" else parts)


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + ", …" * (len(names) > 6)


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
    treedef: Any  # mypy does not know the class
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
