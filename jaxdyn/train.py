"""Training as a pure function of a state, either recorded inside a trial or advanced in segments from the host.

A state holds parameters, the optimizer's state and the number of steps made. The data of step ``i`` is a function of ``i``
(``batch``, from ``jax.random.fold_in(key, i)``), so that a run resumed from its state equals the uninterrupted run.
Hyperparameters are traced: build the optimizer inside the trial, e.g. ``optax.sgd(s.lr, momentum=s.beta)``.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PyTree

from jaxdyn.engine.claims.code_field import Code
from jaxdyn.errors import UsageError, is_traced, shown, whole
from jaxdyn.status import DIVERGED, OK

__all__ = [
    "Learning",
    "State",
    "descend",
    "finite_status",
    "init",
    "learned",
    "learning",
    "make_step",
    "record",
    "segments",
    "switched",
]

MOST = 2**31 - 1  # largest number of steps: they are counted in 32 bits


class State(NamedTuple):
    """Everything that a run carries from one step to the next; ``step`` counts the steps made."""

    params: PyTree
    opt: PyTree
    step: Int[Array, ""]


def init(tx: optax.GradientTransformation, params: PyTree) -> State:
    """The state before the first step."""
    return State(params, tx.init(params), jnp.zeros((), jnp.int32))


@dataclasses.dataclass
class Learning:
    """How far every step of training goes, as a factor, and how many steps were traced; a step of a loop is traced once."""

    factor: float
    steps: int = 0


# JAX keeps traces of functions: in a context of its own nothing that was traced outside a block, or in another, is taken for it
_tracing = jax.make_user_context(default_value=None)
_blocks = itertools.count(1)
_learning: contextvars.ContextVar[Learning | None] = contextvars.ContextVar("learning", default=None)


@contextlib.contextmanager
def learning(factor: float) -> Iterator[Learning]:
    """Programs that are traced inside the ``with`` block make every step of training ``factor`` times as large.

    With 0 nothing is learned, though all steps are made: the network of which no claim about training may hold. It acts on
    :func:`descend`, on :func:`make_step`, and on steps that return :func:`learned`. Outside it programs are the same, to the bit,
    as if it did not exist.
    """
    now = Learning(factor)
    token = _learning.set(now)
    try:
        with _tracing(next(_blocks)):
            yield now
    finally:
        _learning.reset(token)


def learned(before: PyTree, after: PyTree) -> PyTree:
    """The weights ``after`` a step from ``before``; inside :func:`learning`, its factor of the way.

    For steps that are not made by :func:`descend`: ``return train.learned(w, w - s.lr * slope(w))``.
    """
    now = _learning.get()
    if now is None:
        return after
    now.steps += 1
    if now.factor == 0:
        return before
    return jax.tree.map(lambda old, new: old + now.factor * (new - old), before, after)


def descend(tx: optax.GradientTransformation, state: State, gradient: PyTree) -> State:
    """The state after one optimizer step with a given gradient."""
    updates, opt = tx.update(gradient, state.opt, state.params)
    return State(learned(state.params, optax.apply_updates(state.params, updates)), opt, state.step + 1)


def make_step(
    loss: Callable[..., Any], tx: optax.GradientTransformation, batch: Callable[..., Any] | None = None, *, parts: int = 1
) -> Callable[..., State]:
    r"""One step of training, ``step(state, *data) -> state``.

    .. math:: \theta_{i+1} = \theta_i + \text{tx}\bigl(\nabla_\theta L(\theta_i, b_i)\bigr)

    Args:
        loss: ``loss(params, *data)``, a scalar; with a ``batch`` it is ``loss(params, batch(i, *data))``.
        tx: the optimizer.
        batch: draws the data of step ``i`` (int32, traced), e.g. from ``jax.random.fold_in(key, i)``.
        parts: number of equal parts into which the leading axis of all data is cut; parts are processed in turn, and their
            gradients averaged, in float32 at least. The step is the same if the loss is a mean over that axis; a part may fit into
            the cache.

    Raises:
        UsageError: if ``parts`` is below 1, or the data cannot be cut into equal parts together (when the step is made).
    """
    parts = whole("parts", parts, least=1)

    def slope(params: PyTree, *inputs: Any) -> PyTree:
        return jax.grad(loss)(params, *inputs)

    def mean_slope(params: PyTree, *inputs: Any) -> PyTree:
        lengths = [jnp.shape(x)[:1] for x in jax.tree.leaves(inputs)]
        if not lengths or any(not length or not length[0] or length[0] % parts for length in lengths):
            raise UsageError(f"parts={parts} is not allowed: it divides the length of all data, and there is some")
        if len(set(lengths)) > 1:
            first = ", ".join(str(length) for (length,) in dict.fromkeys(lengths))
            raise UsageError(
                f"parts={parts} is not allowed for data whose leading axes have the lengths {first}: all have the same"
            )
        cut = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), inputs)

        def add(total: PyTree, part: Any) -> tuple[PyTree, None]:
            return jax.tree.map(jnp.add, total, slope(params, *part)), None

        # a sum of bfloat16 stops growing at 256 times its terms
        wide = jax.tree.map(lambda p: jnp.zeros(jnp.shape(p), jnp.promote_types(jnp.result_type(p), jnp.float32)), params)
        total, _ = jax.lax.scan(add, wide, cut)
        return jax.tree.map(lambda x, p: (x / parts).astype(jnp.result_type(p)), total, params)

    def step(state: State, *data: Any) -> State:
        inputs = data if batch is None else (batch(state.step, *data),)
        return descend(tx, state, (slope if parts == 1 else mean_slope)(state.params, *inputs))

    return step


def record(
    step: Callable[[Any], Any], state: Any, observe: Callable[[Any], Any], *, samples: int, every: int | Int[Array, ""]
) -> tuple[Any, Any]:
    """Make ``samples * every`` steps, observing before the first and after every ``every`` steps.

    Args:
        step: ``step(state) -> state``, from :func:`make_step` or any other map (states need not be :class:`State`).
        state: the start.
        observe: ``observe(state)``, a pytree of arrays.
        samples: number of observations after the first.
        every: steps between two observations. It may be traced, so that step sizes eta, eta/2, ... share one program at equal
            times: ``every = jnp.round(dt / eta).astype(int)``. Under ``vmap`` all runs wait for the one with the most steps.

    Returns:
        The last state, and the observations stacked along a leading axis of length ``samples + 1``.

    Raises:
        UsageError: unless ``samples`` is a whole number of at least 0, and ``every`` of at least 1 (a traced ``every`` below 1
            makes no steps).
    """
    samples = whole("samples", samples, least=0)
    every = whole("every", every, least=1, most=MOST // max(samples, 1), traced=True)
    counts = jnp.full(samples + 1, every, jnp.int32).at[0].set(0)

    def advance(state: Any, count: Int[Array, ""]) -> tuple[Any, Any]:
        state = jax.lax.fori_loop(0, count, lambda _, s: step(s), state)
        return state, observe(state)

    return jax.lax.scan(advance, state, counts)


def segments(step: Callable[..., State], state: State, *, until: int, every: int, data: tuple[Any, ...] = ()) -> Iterator[State]:
    """Train from the host, for runs of minutes: yields the state after every ``every`` steps and at step ``until``.

    Save checkpoints, write logs and stop early between two segments. To resume, pass the state of a checkpoint: the rest of the run
    is the same bit for bit, wherever the segments end. All segments share one program. A state that was yielded is donated to the
    next segment and deleted: copy (``jax.device_get``) what you need later. The start that you pass is not modified.

    Args:
        step: ``step(state, *data) -> state``, from :func:`make_step`.
        state: the start; its ``step`` says how many steps were made already.
        until: total number of steps at the end; nothing is yielded if they were already made.
        every: steps in a segment (the last may be shorter).
        data: arrays passed to every step. Arrays in a closure would become constants of the program.

    Raises:
        UsageError: unless ``every`` is a whole number of at least 1, and ``until`` and the state's ``step`` of at least 0.
    """
    every, until = whole("every", every, least=1), whole("until", until, least=0, most=MOST)
    whole("step", getattr(state, "step", None), least=0, most=MOST)
    return _segments(step, jax.tree.map(jnp.copy, state), until, every, data)


def _segments(step: Callable[..., State], state: State, until: int, every: int, data: tuple[Any, ...]) -> Iterator[State]:
    done = int(state.step)
    while done < until:
        count = min(every, until - done)
        state = _segment(step, state, jnp.int32(count), data)
        done += count
        yield state


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def _segment(step: Callable[..., State], state: State, count: Int[Array, ""], data: tuple[Any, ...]) -> State:
    return jax.lax.fori_loop(0, count, lambda _, s: step(s, *data), state)


def finite_status(tree: PyTree) -> Int[Array, ""]:
    """``OK`` if every number in the tree is finite, else ``DIVERGED``: the status of a run from its last state or its curves."""
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]
    return jnp.where(jnp.all(jnp.stack(finite)), jnp.int32(OK), jnp.int32(DIVERGED)) if finite else jnp.int32(OK)


def switched(choice: Code, txs: Mapping[str, optax.GradientTransformation]) -> optax.GradientTransformation:
    """One of several optimizers, chosen by a traced switch, so that runs with any of them share one program.

    ``switched(s.optimizer, {"gd": optax.sgd(s.lr), "adam": optax.adam(s.lr)})`` inside a trial, with a field
    ``optimizer: jd.Code = jd.code("gd", "adam")``. The state holds the states of all optimizers; only the chosen one is updated.
    Under ``vmap`` over the switch every run computes all updates and uses one.

    Raises:
        UsageError: if the switch's names are not those of the optimizers, or the switch is known and has none of these values.
    """
    if not isinstance(choice, Code):
        raise UsageError(f"choice={shown(choice)} is not allowed: it is a switch, declared by jd.code")
    if not is_traced(choice.index):
        whole("choice", choice.index, least=0, most=len(choice.names) - 1)
    if set(txs) != set(choice.names):
        raise UsageError(f"the optimizers are {', '.join(txs) or 'none'}, the switch has {', '.join(choice.names)}")

    def init_all(params: PyTree) -> dict[str, Any]:
        return {name: tx.init(params) for name, tx in txs.items()}

    def only(name: str) -> Callable[..., tuple[PyTree, dict[str, Any]]]:
        def update(gradient: PyTree, states: dict[str, Any], params: PyTree) -> tuple[PyTree, dict[str, Any]]:
            updates, state = txs[name].update(gradient, states[name], params)
            return updates, {**states, name: state}

        return update

    def update(gradient: PyTree, states: dict[str, Any], params: PyTree | None = None) -> tuple[PyTree, dict[str, Any]]:
        return jax.lax.switch(choice.index, [only(name) for name in choice.names], gradient, states, params)

    return optax.GradientTransformation(init_all, update)
