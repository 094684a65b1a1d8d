"""Training loops as pure functions of a state: inside a trial (``record``) and from the host (``segments``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PyTree

from jaxdyn.status import DIVERGED, OK

__all__ = ["State", "finite_status", "init", "make_step", "record", "segments", "switched"]


class State(NamedTuple):
    """All that a training run carries from one step to the next."""

    params: PyTree
    opt: PyTree
    step: Int[Array, ""]


def init(tx: optax.GradientTransformation, params: PyTree) -> State:
    """The state before the first step."""
    return State(params, tx.init(params), jnp.zeros((), jnp.int32))


def make_step(
    loss: Callable[..., Array], tx: optax.GradientTransformation, batch: Callable[..., Any] | None = None
) -> Callable[..., State]:
    """One step of training, ``step(state, *data) -> state``.

    The gradient is of ``loss(params, *data)``, or of ``loss(params, batch(state.step, *data))`` when ``batch`` is given.
    """

    def step(state: State, *data: Any) -> State:
        inputs = data if batch is None else (batch(state.step, *data),)
        gradient = jax.grad(loss)(state.params, *inputs)
        updates, opt = tx.update(gradient, state.opt, state.params)
        return State(optax.apply_updates(state.params, updates), opt, state.step + 1)

    return step


def record(
    step: Callable[[PyTree], PyTree],
    state: PyTree,
    observe: Callable[[PyTree], PyTree],
    *,
    samples: int,
    every: int | Int[Array, ""],
) -> tuple[PyTree, PyTree]:
    """Run ``samples * every`` steps; returns the last state and ``observe(state)`` at steps 0, every, ..., samples * every."""
    counts = jnp.full(samples + 1, every, jnp.int32).at[0].set(0)

    def advance(state: PyTree, count: Int[Array, ""]) -> tuple[PyTree, PyTree]:
        state = jax.lax.fori_loop(0, count, lambda _, s: step(s), state)
        return state, observe(state)

    return jax.lax.scan(advance, state, counts)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def _segment(step: Callable, state: State, count: Int[Array, ""], data: tuple) -> State:
    return jax.lax.fori_loop(0, count, lambda _, s: step(s, *data), state)


def segments(step: Callable[..., State], state: State, *, until: int, every: int, data: tuple = ()) -> Iterator[State]:
    """Host-side loop for long runs: yields the state after each segment of ``every`` steps, up to step ``until``."""
    state = jax.tree.map(jnp.copy, state)
    at = int(state.step)
    while at < until:
        count = min(every, until - at)
        state = _segment(step, state, jnp.int32(count), data)
        at += count
        yield state


def finite_status(tree: PyTree) -> Int[Array, ""]:
    """``OK`` when every number of the tree is finite, else ``DIVERGED``."""
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]
    return jnp.where(jnp.all(jnp.array(finite)), jnp.int32(OK), jnp.int32(DIVERGED))


def switched(index: Int[Array, ""], txs: Mapping[str, optax.GradientTransformation]) -> optax.GradientTransformation:
    """The optimizer number ``index`` (traced) of ``txs``, in their order; it holds the states of all, and updates the chosen one."""
    names = list(txs)

    def init_all(params: PyTree) -> dict:
        return {name: txs[name].init(params) for name in names}

    def branch(name: str) -> Callable:
        def update(gradient: PyTree, states: dict, params: PyTree) -> tuple[PyTree, dict]:
            updates, new = txs[name].update(gradient, states[name], params)
            return updates, {**states, name: new}

        return update

    branches = [branch(name) for name in names]

    def update(gradient: PyTree, states: dict, params: PyTree | None = None) -> tuple[PyTree, dict]:
        return jax.lax.switch(index, branches, gradient, states, params)

    return optax.GradientTransformation(init_all, update)
