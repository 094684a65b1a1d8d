"""An optimizer that is reset after a number of steps, as where a training loop builds it at the start of each epoch."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PyTree

from jaxdyn.errors import UsageError, whole
from jaxdyn.optim.periodic import LARGEST, following

__all__ = ["restarting"]


class Restarting(NamedTuple):
    """Steps made, and the state of the optimizer inside."""

    steps: Int[Array, ""]
    inner: PyTree


def restarting(tx: optax.GradientTransformation, every: int | Int[Array, ""]) -> optax.GradientTransformation:
    """``tx`` with a fresh state before steps 0, every, 2 every, ...; with ``every`` 0 it is never reset.

    Source: released code of arXiv:2310.00535 (section 5), which makes Adam inside the loop over epochs. ``every`` may be traced.

    Raises:
        UsageError: for a period that is no whole number, or negative; for a step without the parameters.
    """
    every = whole("every", every, least=0, most=LARGEST, traced=True)

    def init(params: PyTree) -> Restarting:
        return Restarting(jnp.zeros((), jnp.int32), tx.init(params))

    def update(gradient: PyTree, state: Restarting, params: PyTree | None = None) -> tuple[PyTree, Restarting]:
        if params is None:
            raise UsageError("a step without the parameters is not allowed: restarting makes its fresh state from them")
        fresh = (every > 0) & (state.steps % jnp.maximum(every, 1) == 0)
        # a choice, entry by entry, which the compiler joins with the update: no pass over memory of its own
        inner = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), tx.init(params), state.inner)
        updates, inner = tx.update(gradient, inner, params)
        return updates, Restarting(following(state.steps, every), inner)

    return optax.GradientTransformation(init, update)
