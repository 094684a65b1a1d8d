"""Checks of the trees and dtypes that an optimizer is given: what is wrong is said in one sentence."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from jaxdyn.errors import UsageError

__all__ = ["check_dtype", "check_shape", "flat"]


def check_dtype(name: str, value: Any) -> None:
    """Refuse all but the name of a dtype of floating-point numbers, or None.

    Raises:
        UsageError: for anything else.
    """
    try:
        floating = value is None or jnp.issubdtype(jnp.dtype(value), jnp.floating)
    except (TypeError, ValueError):
        floating = False
    if not floating:
        raise UsageError(f"{name}={value!r} is not allowed: {name} is a dtype of floating-point numbers, e.g. float32, or None")


def check_shape(expected: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse a gradient of another shape than its parameter had when the state was made: it would be broadcast.

    Raises:
        UsageError: if they differ.
    """
    if expected != shape:
        raise UsageError(f"a gradient of shape {shape} is not allowed: the state is that of a parameter of shape {expected}")


def flat(tree: PyTree, *others: PyTree) -> tuple[Any, ...]:
    """The leaves of a tree of weights or gradients, its structure, and the parts of other trees at its leaves.

    Raises:
        UsageError: for leaves that are no arrays of real floating-point numbers of 16 bits or more, or if the structures differ.
    """
    named, treedef = jax.tree_util.tree_flatten_with_path(tree)
    for path, x in named:
        dtype = getattr(x, "dtype", None)
        if dtype is None or not jnp.issubdtype(dtype, jnp.floating) or dtype.itemsize < 2:
            kind = type(x).__name__ if dtype is None else str(dtype)
            place = jax.tree_util.keystr(path) or "the tree"
            raise UsageError(
                f"{place} is of type {kind}, which is not allowed: weights and gradients are floats of 16 bits or more"
            )
    try:
        parts = [treedef.flatten_up_to(other) for other in others]
    except ValueError:
        raise UsageError("a tree unlike that of the parameters with which the optimizer's state was made is not allowed") from None
    return [x for _, x in named], treedef, *parts
