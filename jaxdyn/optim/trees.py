"""The trees and dtypes that an optimizer is given: flax's variables are unwrapped, and what is wrong is said in one sentence."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from jaxdyn.errors import UsageError, is_traced, shown, whole

__all__ = ["INJECTED", "check_dtype", "check_shape", "flat", "on_arrays", "plain", "rank_known"]

INJECTED = "optax.inject_hyperparams names it in static_args"


def check_dtype(name: str, value: Any) -> None:
    """Refuse all but the name of a dtype of floating-point numbers, or None.

    Raises:
        UsageError: for anything else.
    """
    try:
        floating = value is None or jnp.issubdtype(jnp.dtype(value), jnp.floating)
    except (TypeError, ValueError, SyntaxError):  # NumPy reads "," as a list of types
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


def rank_known(rank: Any) -> int:
    """A rank as a Python int: it is a shape, so that no program can be given it.

    Raises:
        UsageError: for anything else.
    """
    if is_traced(rank):
        raise UsageError(f"rank={shown(rank)} is not allowed: a rank is known before the program runs; {INJECTED}")
    found: int = whole("rank", rank, least=1)
    return found


def flat(tree: PyTree, *others: PyTree) -> tuple[Any, ...]:
    """The leaves of a tree of weights or gradients, its structure, and the parts of other trees at its leaves.

    Raises:
        UsageError: for leaves that are no arrays of real floating-point numbers of 16 bits or more, or if the structures differ.
    """
    treedef: Any  # mypy does not know the class
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


def plain(tree: PyTree) -> PyTree:
    """A tree of flax's variables (``nnx.state(model, nnx.Param)``) as one of the arrays in them; any other tree as it is."""

    def is_variable(x: Any) -> bool:
        return hasattr(x, "get_value") and hasattr(x, "get_metadata")

    return jax.tree.map(lambda x: x.get_value() if is_variable(x) else x, tree, is_leaf=is_variable)


def on_arrays(tx: optax.GradientTransformation) -> optax.GradientTransformation:
    """A transformation whose state knows arrays only; updates have the structure of the gradient, with flax's variables or not.

    ``nnx.Optimizer`` makes the state from variables and gives arrays at an update. A state with variables at the places of bases
    or factors, which have other shapes than the parameters or are None, would not fit them.
    """

    def update(gradient: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        arrays = plain(gradient)
        updates, state = tx.update(arrays, state, plain(params))
        own: Any = jax.tree.structure(gradient)
        return updates if jax.tree.structure(arrays) == own else jax.tree.unflatten(own, jax.tree.leaves(updates)), state

    return optax.GradientTransformation(lambda params: tx.init(plain(params)), update)
