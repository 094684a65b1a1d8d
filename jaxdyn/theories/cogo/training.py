r"""How CoGO's networks are trained: full batch, Adam with coupled weight decay, a random tenth of all pairs held out.

Weight decay kills nodes: of 512 about 60 are left at d = 23. Dead is a node that adds less than 4e-6 to any output, where Adam's
steps leave errors of 2e-3, and all of whose weights lie below 0.1. Its own gradient is quadratic in those weights, so that decay
wins for good: near a solution the nodes that live have weights of 0.25, which decay balances against a residual of lambda / 0.25,
and it would take 2.5 times that to sustain the largest of the dead. Such nodes are set to zero, nodes are put in order of size, and
the steps are made on the first 512, 256, 128, ... nodes that hold all others. The loss is summed over pairs in small groups
(:mod:`pairs`) and taken from Gram matrices (:mod:`gram`) in large ones; both are the same number.
Source: arXiv:2410.01779, section 6, and the settings of its code. Letters: d elements, q nodes, n pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train as training_loop
from jaxdyn.data.abelian import Abelian, parse
from jaxdyn.theories.cogo import model

SILENT = 4e-6  # most that a dead node adds to an output
FEEBLE = 0.1  # largest weight of a dead node
SMALL = 32  # order up to which sums over pairs take as long as Gram matrices; their programs compile four times as fast


@jd.setting
class Training:
    """A training run; the defaults are those of the published table except for the group."""

    lr: jd.Swept = 0.01  # rate of Adam
    decay: jd.Swept = 5e-5  # coupled: decay * w is added to the gradient
    polish: jd.Swept = 0.0  # share of the epochs at the end over which the rate falls to zero; the table has none
    width: jd.Swept = jd.field(0.0, at_least=0)  # number of nodes, in as many of the hidden places; 0 for all of them
    group: str = "23"  # orders of the group's cyclic factors, as in 2x4
    hidden: int = jd.field(512, at_least=1)  # places for nodes
    epochs: int = jd.field(9900, at_least=0)  # epochs of training, each one full-batch step
    every: int = jd.field(100, at_least=1)  # epochs between records
    held_out: float = jd.field(0.1, at_least=0, below=1)  # share of pairs
    activation: model.Activation = "quadratic"  # activation of the nodes; quadratic in the theory
    shrink: bool = True  # False where runs are vmapped (GPU, TPU): all widths would be computed, and one taken
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse groups without a name, more nodes than places, and records that do not end with the run."""
        parse(self.group)
        jd.require(self, self.width <= self.hidden, "width is at most hidden", "width", "hidden")
        jd.require(self, self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")


class Run(NamedTuple):
    """The trained weights, records along training, and which pairs were held out."""

    w: Float[Array, "3 d q"]
    curves: dict[str, Float[Array, "t ..."]]
    held_out: Bool[Array, "d d"]


def split(key: PRNGKeyArray, group: Abelian, share: float) -> tuple[Int[Array, "n 2"], Int[Array, "m 2"]]:
    """Pairs to train on, and the held-out ones: the share rounded up."""
    order = jax.random.permutation(key, group.order**2)
    pairs = jnp.stack(jnp.divmod(order, group.order), -1)
    count = math.ceil(share * group.order**2)
    return pairs[count:], pairs[:count]


def train(
    s: Training,
    key: PRNGKeyArray,
    watch: Callable[[Float[Array, "3 d q"]], dict[str, Array]] = lambda w: {},
    solved: float = 0.0,
) -> Run:
    r"""Train one network, and record losses, accuracies and sums of potentials before the first epoch and after each ``every``.

    The records: ``train_loss``, ``test_loss`` (code scale), ``train_accuracy``, ``test_accuracy``, ``diagonal``
    (:math:`2d\sum_{k \ne 0} \mathrm{Re}\, r_{kkk}`, which is d - 1 at a solution), ``cross`` (the same sum over all other
    :math:`r_{k_1k_2k}` without zero modes), ``nodes`` (how many are not dead), and what ``watch`` makes of the weights.
    From the first record with a training loss below ``solved`` on, the weights stay as they are.
    """
    # data and start
    group = parse(s.group)
    k_data, k_init = jax.random.split(key)
    out = split(k_data, group, s.held_out)[1]
    held_out = jnp.zeros((group.order,) * 2, bool).at[out[:, 0], out[:, 1]].set(True)
    tx = optax.chain(optax.add_decayed_weights(s.decay), optax.scale_by_adam(), optax.scale_by_schedule(lambda i: -rate(s, i)))
    state = training_loop.init(tx, model.init(k_init, group, s.hidden, s.dtype, size(s)))

    step = training_loop.make_step(objective(s, group, out), tx)

    # records, with steps on as many nodes as are alive between them
    def record(w: Float[Array, "3 d q"]) -> dict[str, Array]:
        return observe(w, s, group, held_out) | watch(w)

    def further(state: training_loop.State) -> tuple[training_loop.State, dict]:
        state, live = settled(state) if s.activation == "quadratic" else (state, s.hidden)
        sizes = widths(s, group)
        narrow = [narrowed(step, s.every, q) for q in sizes]
        state = jax.lax.switch(jnp.sum(jnp.array(sizes) >= live) - 1, narrow, state)
        return state, record(state.params)

    def advance(carry: tuple[training_loop.State, dict], _: None) -> tuple[tuple[training_loop.State, dict], dict]:
        carry = jax.lax.cond(carry[1]["train_loss"] < solved, lambda: carry, lambda: further(carry[0]))
        return carry, carry[1]

    # all records, and the nodes in order at the end
    first = record(state.params)
    (state, _), later = jax.lax.scan(advance, (state, first), length=s.epochs // s.every)
    return Run(settle(state)[0].params, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later), held_out)


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """One network for later analysis: its weights, nodes in order of size, and its records."""
    run = train(s, key)
    return jd.observables(
        measured={"w": jd.named(run.w, "layer element node")},
        recorded={name: jd.named(curve, "epoch") for name, curve in run.curves.items()},
        coords={"layer": ("a", "b", "c"), "epoch": range(0, s.epochs + 1, s.every)},
    )


def size(s: Training) -> Float[Array, ""]:
    """Number of nodes at the start."""
    return jnp.where(s.width > 0, s.width, s.hidden)


def rate(s: Training, step: Int[Array, ""]) -> Float[Array, ""]:
    """The learning rate of a step: constant, and falling at the end where ``polish`` is not zero."""
    left = (s.epochs - step.astype(s.dtype)) / (jnp.maximum(s.polish, 1e-9) * s.epochs)
    return s.lr * jnp.where(s.polish > 0, jnp.clip(left, 0, 1), 1).astype(s.dtype)


def widths(s: Training, group: Abelian) -> tuple[int, ...]:
    """Numbers of nodes for which steps are compiled: halves of q, down to the 2d nodes that a solution needs."""
    if s.activation != "quadratic" or not s.shrink:
        return (s.hidden,)
    sizes = [s.hidden]
    while sizes[-1] % 2 == 0 and sizes[-1] // 2 >= 2 * group.order:
        sizes.append(sizes[-1] // 2)
    return tuple(sizes)


def settle(state: training_loop.State) -> tuple[training_loop.State, Int[Array, ""]]:
    """Nodes in order of size with the dead ones set to zero, and how many are alive."""
    alive = living(state.params)
    order = jnp.argsort(-jnp.where(alive, jnp.max(jnp.abs(state.params), (0, 1)), 0))
    alive = alive[order]
    return jax.tree.map(lambda x: jnp.where(alive, x[..., order], 0) if x.ndim == 3 else x, state), jnp.sum(alive)


def settled(state: training_loop.State) -> tuple[training_loop.State, Int[Array, ""]]:
    """As :func:`settle`, which takes as long as a few steps; nothing is moved if the dead nodes are zero and at the end already."""
    alive, zero = living(state.params), jnp.all(state.params == 0, (0, 1))
    tidy = jnp.all(alive | zero) & jnp.all(alive[:-1] >= alive[1:])
    return jax.lax.cond(tidy, lambda x: x, lambda x: settle(x)[0], state), jnp.sum(alive)


def living(w: Float[Array, "3 d q"]) -> Bool[Array, " q"]:
    """Nodes that are not dead: ``SILENT`` and ``FEEBLE``."""
    a, b, c = jnp.max(jnp.abs(w), 1)
    return (jnp.square(a + b) * c >= SILENT) | (jnp.maximum(jnp.maximum(a, b), c) >= FEEBLE)


def narrowed(step: Callable[[Any], Any], count: int | Int[Array, ""], size: int) -> Callable[[Any], Any]:
    """``count`` steps on the first ``size`` nodes, the others being zero."""

    def go(state: training_loop.State) -> training_loop.State:
        part = jax.tree.map(lambda x: x[..., :size] if x.ndim == 3 else x, state)
        part = jax.lax.fori_loop(0, count, lambda _, p: step(p), part)
        return jax.tree.map(lambda x, p: x.at[..., :size].set(p) if x.ndim == 3 else p, state, part)

    return go


def objective(s: Training, group: Abelian, out: Int[Array, "m 2"]) -> Callable[[Float[Array, "3 d q"]], Float[Array, ""]]:
    """The loss over all pairs except those left out; see ``SMALL`` and benchmarks/cogo_loss.py."""
    if s.activation == "quadratic" and group.order > SMALL:
        return lambda w: model.loss_without(w, group, "code", out)[0]
    used = jnp.ones((group.order,) * 2, bool).at[out[:, 0], out[:, 1]].set(False)
    if s.activation == "quadratic":
        return lambda w: model.loss_of_pairs(w, group, used)
    return lambda w: model.loss(w, group, "code", used, s.activation)


def observe(w: Float[Array, "3 d q"], s: Training, group: Abelian, held_out: Bool[Array, "d d"]) -> dict[str, Float[Array, ""]]:
    """Records of a state; see :func:`train`."""
    o = model.output(model.centred(w), s.activation)
    each, right = model.distance(o, group), (jnp.argmax(o, -1) == jnp.asarray(group.add)).astype(s.dtype)
    centred = w - jnp.mean(w, 1, keepdims=True)
    every = 2 * group.order * jnp.sum(centred[0, 0] * centred[1, 0] * centred[2, 0])
    a, b, c = centred
    diagonal = 2 * group.order * model.target(a, b, c, group)
    parts = {}
    for name, only in (("train", ~held_out), ("test", held_out)):
        count = jnp.sum(only).astype(s.dtype)
        parts[f"{name}_loss"] = jnp.sum(jnp.where(only, each, 0)) / count
        parts[f"{name}_accuracy"] = jnp.sum(jnp.where(only, right, 0)) / count
    return parts | {"diagonal": diagonal, "cross": every - diagonal, "nodes": jnp.sum(living(w)).astype(s.dtype)}
