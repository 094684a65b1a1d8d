"""Rare, costly work in a step that is vmapped and scanned: done when it is due, and only then.

``lax.cond`` with a batched predicate becomes a selection, and both branches run in every step: a singular value decomposition that
is due every 200 steps would run 200 times as often. Here the predicate of a batch is whether it is due anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, PyTree

from jaxdyn.errors import whole

__all__ = ["LARGEST", "following", "period", "when"]

LARGEST = 2**30  # of periods: int32 counts twice as far


def when(due: Bool[Array, ""], work: Callable[..., PyTree], old: PyTree, *args: PyTree) -> PyTree:
    """``work(*args)`` if it is due, else ``old``; under ``vmap``, however deep, the work runs only if it is due for some element.

    Args:
        due: whether; batched where the elements have clocks of their own.
        work: returns a tree like ``old``. It must not close over traced values: give them as arguments.
        old: what stays otherwise.
        *args: the arguments of the work.
    """

    @custom_vmap
    def run(due: Array, old: PyTree, args: PyTree) -> PyTree:
        return jax.lax.cond(due, lambda: work(*args), lambda: old)

    @run.def_vmap
    def rule(size: int, batched: Any, due: Array, old: PyTree, args: PyTree) -> tuple[PyTree, PyTree]:
        due_axis, old_axes, args_axes = jax.tree.map(lambda b: 0 if b else None, tuple(batched))
        batched_old = jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), old, batched[1])

        def each(due: Array, old: PyTree, args: PyTree) -> PyTree:
            def one(due: Array, old: PyTree, args: PyTree) -> PyTree:
                return jax.tree.map(lambda new, x: jnp.where(due, new, x), work(*args), old)

            return jax.vmap(one, (due_axis, old_axes, args_axes), axis_size=size)(due, old, args)

        anywhere = jnp.any(due) if batched[0] else due
        return when(anywhere, each, batched_old, due, old, args), jax.tree.map(lambda _: True, old)

    return run(due, old, args)


def period(every: int | Int[Array, ""] | None, *, none: bool = False) -> Any:
    """A number of steps between two occasions: Python's int, or a traced one, which is taken for 1 if it is less.

    Raises:
        UsageError: for anything else; None is returned if it is allowed.
    """
    if every is None and none:
        return None
    every = whole("every", every, least=1, most=LARGEST, traced=True)
    return every if isinstance(every, int) else jnp.maximum(every, 1)


def following(count: Int[Array, ""], every: int | Int[Array, ""] | None) -> Int[Array, ""]:
    """The number of the next step of int32, for what is done whenever ``count % every`` is 0.

    After the last number it falls back by whole periods, to 2^30 or more, so that the work goes on; without a period it stays.
    """
    if every is None:
        return optax.safe_increment(count)
    steps = jnp.maximum(jnp.asarray(every, jnp.int32), 1)
    back = steps * (LARGEST // steps)
    return optax.safe_increment(jnp.where(count == jnp.iinfo(jnp.int32).max, count - back, count))
