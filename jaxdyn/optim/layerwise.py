r"""Training in which a stack of equal layers is updated during backpropagation, so that the gradient of one layer exists at a time.

Going back, layer l's gradient is found from its input and what comes from above; the optimizer takes it at once, the weights are
overwritten, and only :math:`\partial L / \partial x_l` is passed down. The steps are those of an update after backpropagation:
layer l's gradient needs the weights of layers above and of its own, which it gets before they are overwritten.
Source: the per-layer updates of arXiv:2403.03507, section 4.3 (there: hooks); arXiv:2306.09782 (LOMO), algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from jaxdyn import train
from jaxdyn.errors import UsageError

__all__ = ["Layers", "State", "layerwise"]


class Layers(NamedTuple):
    """A network: ``enter(rest, *data) -> x``, ``block(w, x) -> x`` of every layer, ``leave(rest, x, *data) -> loss``."""

    enter: Callable[..., Any]
    block: Callable[..., Any]
    leave: Callable[..., Any]


class State(NamedTuple):
    """Weights outside the layers and of the layers (a leading axis of layers), and the optimizer's states of both."""

    rest: PyTree
    stack: PyTree
    opt_rest: PyTree
    opt_stack: PyTree


def layerwise(net: Layers, tx: optax.GradientTransformation) -> tuple[Callable[..., State], Callable[..., tuple[State, Any]]]:
    """Start and step of training; donate the state to the step, else the weights exist twice.

    ``tx`` sees one layer at a time, and the other weights as a tree of their own: clipping by the norm of the whole gradient, or
    whatever else mixes layers, becomes a different optimizer here.

    Returns:
        ``start(rest, stack) -> State`` and ``step(state, *data) -> (state, loss)``.

    Raises:
        UsageError: for a stack without layers, or of unequally many (by ``start``).
    """

    def start(rest: PyTree, stack: PyTree) -> State:
        if len({x.shape[:1] for x in jax.tree.leaves(stack)} - {(), (0,)}) != 1 or not all(x.size for x in jax.tree.leaves(stack)):
            raise UsageError("this stack of layers is not allowed: all its weights have the same leading axis, one layer or more")
        return State(rest, stack, tx.init(rest), jax.vmap(tx.init)(stack))

    def step(state: State, *data: Any) -> tuple[State, Float[Array, ""]]:
        x, from_start = jax.vjp(lambda rest: net.enter(rest, *data), state.rest)
        x, inputs = jax.lax.scan(lambda x, w: (net.block(w, x), x), x, state.stack)
        loss, from_end = jax.vjp(lambda rest, x: net.leave(rest, x, *data), state.rest, x)
        last, above = from_end(jnp.ones_like(loss))
        count = jax.tree.leaves(state.stack)[0].shape[0]

        def back(i: Array, carry: tuple[PyTree, PyTree, Any]) -> tuple[PyTree, PyTree, Any]:
            stack, opt, above = carry
            layer = count - 1 - i
            w, own, x = (jax.tree.map(lambda a: a[layer], tree) for tree in (stack, opt, inputs))
            gradient, below = jax.vjp(net.block, w, x)[1](above)
            updates, own = tx.update(gradient, own, w)
            new = train.learned(w, optax.apply_updates(w, updates))
            stack, opt = (jax.tree.map(lambda a, b: a.at[layer].set(b), old, one) for old, one in ((stack, new), (opt, own)))
            return stack, opt, below

        stack, opt_stack, below = jax.lax.fori_loop(0, count, back, (state.stack, state.opt_stack, above))
        gradient = jax.tree.map(jnp.add, from_start(below)[0], last)
        updates, opt_rest = tx.update(gradient, state.opt_rest, state.rest)
        rest = train.learned(state.rest, optax.apply_updates(state.rest, updates))
        return State(rest, stack, opt_rest, opt_stack), loss

    return start, step
