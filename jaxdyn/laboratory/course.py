r"""One run of the laboratory: a network in training, read every so many steps, and both sides of each law at the end.

.. math:: \theta_{i+1} = \theta_i + \text{tx}\bigl(\nabla L(\theta_i, b_i)\bigr), \qquad \text{read at } i = 0, k, 2k, \dots

What is read is of the same batch at all times, so that readings differ by the weights alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import nn, train
from jaxdyn.errors import is_traced
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Law, Sides, sides
from jaxdyn.instruments.moment import Batch, Moment, batch_loss
from jaxdyn.laboratory.tasks import Task

__all__ = ["Begun", "Course", "Plan", "Training", "begin", "run"]


class Plan(NamedTuple):
    """How long a network trains, and on how many sequences; ``same``: all steps see the batch that is read; what is frozen."""

    steps: int
    every: int
    batch: int
    reading: int
    same: bool
    frozen: frozenset[str] = frozenset()


class Training(NamedTuple):
    """A network to be trained: its shape, the source of its sequences, the optimizer, the plan, and the rate that laws are told."""

    shape: nn.Transformer
    task: Task
    tx: optax.GradientTransformation
    plan: Plan
    lr: Any


class Course(NamedTuple):
    """What a run gives: both sides of every law, what instruments read, the loss on the batch that is read, and how it ended."""

    laws: dict[str, Sides]
    readings: dict[str, dict[str, Float[Array, "time ..."]]]
    step: Int[Array, " time"]
    loss: Float[Array, " time"]
    status: Int[Array, ""]


class Begun(NamedTuple):
    """A network before its first step, what laws remember then, a step of training, and a reading of all that is watched."""

    state: train.State
    memories: dict[str, PyTree]
    step: Callable[[train.State], train.State]
    observe: Callable[[train.State, dict[str, PyTree]], tuple[dict[str, PyTree], PyTree]]


def begin(training: Training, watched: Sequence[Law | Instrument], key: PRNGKeyArray) -> Begun:
    """A network at its start; what is random depends on the key alone."""
    shape, task, tx, plan, lr = training
    k_world, k_init, k_read, k_batch, k_drop = jax.random.split(key, 5)
    world = task.world(k_world)
    reading = task.batch(world, k_read, plan.reading)
    drops = is_traced(shape.dropout) or shape.dropout > 0

    def batch(i: Int[Array, ""]) -> tuple[Batch, Any]:
        drawn = reading if plan.same else task.batch(world, jax.random.fold_in(k_batch, i), plan.batch)
        return drawn, jax.random.fold_in(k_drop, i) if drops else None

    step = train.make_step(lambda params, given: batch_loss(shape, params, *given), tx, batch)
    look, observe = _observer(shape, reading, watched, lr, plan.frozen)
    state = train.init(tx, nn.network(shape).init(k_init))
    laws = [one for one in watched if isinstance(one, Law)]
    return Begun(state, {law.name: law.memory(look(state)[0]) for law in laws if law.memory is not None}, step, observe)


def run(training: Training, watched: Sequence[Law | Instrument], key: PRNGKeyArray) -> Course:
    """Train one network and read laws and instruments along it; what is random depends on the key alone."""
    state, memories, step, observe = begin(training, watched, key)
    plan, lr = training.plan, training.lr

    def advance(carry: tuple[train.State, PyTree], count: Int[Array, ""]) -> tuple[tuple[train.State, PyTree], PyTree]:
        state, memories = carry
        state = jax.lax.fori_loop(0, count, lambda _, s: step(s), state)
        memories, seen = observe(state, memories)
        return (state, memories), seen

    counts = jnp.full(plan.steps // plan.every + 1, plan.every, jnp.int32).at[0].set(0)
    (state, _), (curves, steps, loss) = jax.lax.scan(advance, (state, memories), counts)
    laws = [one for one in watched if isinstance(one, Law)]
    found = {law.name: sides(law, curves[law.name], steps.astype(loss.dtype), lr) for law in laws}
    readings = {one.name: curves[one.name] for one in watched if isinstance(one, Instrument)}
    return Course(found, readings, steps, loss, train.finite_status((state.params, loss)))


def _observer(
    shape: nn.Transformer, reading: Batch, watched: Sequence[Law | Instrument], lr: Any, frozen: frozenset[str]
) -> tuple[Callable[[train.State], tuple[Moment, Array]], Callable[..., tuple[PyTree, PyTree]]]:
    """What looks at a state, and what reads all that is watched there."""

    def loss(params: PyTree) -> Float[Array, ""]:
        return batch_loss(shape, params, reading)

    def look(state: train.State) -> tuple[Moment, Float[Array, ""]]:
        value, gradient = jax.value_and_grad(loss)(state.params)
        return Moment(shape, state.params, reading, gradient, loss, state.opt, lr, state.step, frozen), value

    def observe(state: train.State, memories: dict[str, PyTree]) -> tuple[dict[str, PyTree], PyTree]:
        moment, value = look(state)
        curves, kept = {}, {}
        for one in watched:
            if isinstance(one, Law) and one.memory is not None:
                curves[one.name], kept[one.name] = one.read(moment, memories[one.name])
            elif one.read is not None:
                curves[one.name] = one.read(moment)
        return kept, (curves, state.step, value)

    return look, observe
