r"""Training of Li2's networks: full batch, on a share of all pairs, tested on the rest.

The gradient is written out, one block of samples after another, so that features stay in the cache:

.. math:: R = \frac2n (F V P_M - (Y - \tfrac1M)), \qquad \nabla_V = F^\top R, \qquad
    \nabla_W = X^\top(\sigma'(XW) \circ (R (V P_M)^\top))

Pairs are taken in a random order of which the first n are trained on, and only their blocks are computed: the share is a number,
not a shape, so that runs of all shares are one program. Test pairs are all others.
Source: arXiv:2509.21519, section 3 and the settings of its code. Letters: M elements, K hidden nodes, n samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg
from jaxdyn import train as training_loop
from jaxdyn.data.groups import parse
from jaxdyn.optim.muon import muon
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics.retention import critical_share

MOMENTUM = 0.9  # of gradient descent
BLOCK = 2**19  # largest number of entries of a block of features: 2 MB
Optimizer = Literal["adam", "adamw", "sgd", "muon", "muon_polar"]


@jd.setting
class Training:
    """A training run."""

    share: jd.Swept = 0.4  # of all pairs, to train on; in units of the critical share if ``critical``
    lr: jd.Swept = 0.002  # rate of Adam or gradient descent; of V alone where W has Muon
    decay: jd.Swept = 2e-4  # for Adam and SGD coupled: decay * w is added to the gradient
    top: jd.Swept = 1.0  # factor of V at the start; 0 is the paper's zero-init
    turn: jd.Swept = 0.02  # rate of W where it has Muon
    decayed: jd.Code = jd.code("both", "top", "hidden", "neither")  # which layers have the decay
    group: str = "23"  # whose multiplication is learned; a number M is addition modulo M
    hidden: int = jd.field(256, at_least=1)  # K, nodes
    epochs: int = jd.field(400, at_least=0)  # full-batch steps of training
    every: int = jd.field(10, at_least=1)  # epochs between records
    activation: model.Activation = "square"  # sigma of the hidden nodes
    objective: Literal["mse", "nll"] = "mse"  # squared error of the centred outputs, or cross-entropy
    optimizer: Optimizer = "adam"  # of W; V has Adam where W has Muon
    ridge: bool = False  # V is the ridge solution on the features at every step
    critical: bool = False  # whether share is in units of the critical share
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse names that are no groups, shares without a pair to train or test on, and records that do not end with the run."""
        pairs = parse(self.group).order ** 2
        jd.require(self, 1 <= round(self.pairs * pairs) < pairs, "share leaves a pair to train on and one to test on", "share")
        jd.require(self, self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")
        if self.ridge:
            jd.require(self, self.decay > 0, "a ridge solution needs decay > 0", "decay", "ridge")
            jd.require(self, self.objective == "mse", "a ridge solution needs the objective mse", "objective", "ridge")

    @property
    def pairs(self) -> jd.Swept:
        """The share of all pairs that is trained on."""
        return self.share * critical_share(parse(self.group)) if self.critical else self.share


@runtime_checkable
class Divided(Protocol):
    """A setting whose pairs are trained on in part."""

    @property
    def group(self) -> str:
        """Whose multiplication is learned."""

    @property
    def hidden(self) -> int:
        """Nodes."""

    @property
    def pairs(self) -> jd.Swept:
        """The share of all pairs that is trained on."""


class Data(NamedTuple):
    """All pairs in a random order, in blocks; the first ``used`` are trained on, those from ``order``^2 on are padding."""

    samples: Int[Array, "b r 2"]
    labels: Int[Array, "b r"]
    number: Int[Array, "b r"]
    used: Int[Array, ""]


class Run(NamedTuple):
    """The final weights, and records along training."""

    params: model.Params
    curves: dict[str, Float[Array, "t ..."]]


def data(s: Divided, key: PRNGKeyArray) -> Data:
    """The pairs of a run."""
    group = parse(s.group)
    every = group.order**2
    # a 32nd of the pairs: the last block of those trained on is half empty on average
    rows = min(every, max(32, min(every // 32, BLOCK // s.hidden)))
    blocks = -(-every // rows)
    order = jnp.resize(jax.random.permutation(key, every), (blocks * rows,))
    samples = jnp.stack(jnp.divmod(order, group.order), -1)
    labels = model.products(group, samples)
    shaped = [x.reshape(blocks, rows, *x.shape[1:]) for x in (samples, labels, jnp.arange(blocks * rows))]
    return Data._make((*shaped, jnp.round(jnp.asarray(s.pairs) * every).astype(jnp.int32)))


def outputs(p: model.Params, d: Data, activation: model.Activation) -> Float[Array, "b r M"]:
    """Centred outputs for all pairs."""
    v = _centred(p.v)
    return jax.lax.map(lambda samples: model.features(p.w, samples, activation) @ v, d.samples)


def gradient(p: model.Params, d: Data, s: Training) -> model.Params:
    """The derivative of the training loss, :func:`model.loss` of the pairs that are trained on."""
    v = _centred(p.v)
    scale = (2.0 if s.objective == "mse" else 1.0) / d.used.astype(p.v.dtype)

    def add(block: int | Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
        w, vt = sums
        samples, known = d.samples[block], d.number[block] < d.used
        a = model.preactivations(p.w, samples)
        f, back = jax.vjp(lambda a: model.activate(a, s.activation), a)
        r = jnp.where(known[:, None], _residual(f @ v, d.labels[block], s.objective), 0) * scale
        (change,) = back(r @ v.T)
        left, right = samples[:, 0], p.w.shape[0] // 2 + samples[:, 1]
        # r^T f, transposed at the end: with the long side of f first XLA's product on CPUs is three times slower
        return w.at[left].add(change).at[right].add(change), vt + r.T @ f

    blocks = -(-d.used // d.samples.shape[1])
    w, vt = jax.lax.fori_loop(0, blocks, add, (jnp.zeros_like(p.w), jnp.zeros_like(p.v.T)))
    return model.Params(w, vt.T)


def ridge_top(w: Float[Array, "D K"], d: Data, s: Training) -> Float[Array, "K M"]:
    r"""The V that minimises the training loss with its decay, :math:`\eta = n\,` decay / 2; outputs are centred, not samples."""
    order, wide = w.shape[0] // 2, jnp.float64

    def add(block: int | Int[Array, ""], sums: tuple[Array, ...]) -> tuple[Array, ...]:
        known = (d.number[block] < d.used)[:, None]
        f = jnp.where(known, model.features(w, d.samples[block], s.activation), 0).astype(wide)
        y = jnp.where(known, (d.labels[block][:, None] == jnp.arange(order)) - 1 / order, 0).astype(wide)
        return sums[0] + f.T @ f, sums[1] + y.T @ f

    hidden = w.shape[1]
    start = (jnp.zeros((hidden, hidden), wide), jnp.zeros((order, hidden), wide))
    gram, cross = jax.lax.fori_loop(0, -(-d.used // d.samples.shape[1]), add, start)
    eta = d.used * jnp.asarray(s.decay, wide) / 2
    return linalg.solve(gram + eta * jnp.eye(hidden, dtype=wide), cross.T).astype(w.dtype)


def train(
    s: Training,
    key: PRNGKeyArray,
    watch: Callable[[model.Params, model.Params, Data], dict[str, Array]] | None = None,
    known: float = np.inf,
) -> Run:
    """Train one network, and record losses and accuracies before the first epoch and after each ``every``.

    The records are ``train_loss``, ``test_loss``, ``train_accuracy``, ``test_accuracy``, and those that ``watch`` returns for the
    weights, those at the record before, and the data. From the first record with a test accuracy of ``known`` on, the weights
    stay as they are.
    """
    k_data, k_init = jax.random.split(key)
    d = data(s, k_data)
    p = model.init(k_init, parse(s.group).order, s.hidden, s.dtype)
    p = p._replace(v=p.v * jnp.asarray(s.top, s.dtype))
    step, tx = make_step(s, d)

    def record(now: model.Params, before: model.Params) -> dict[str, Array]:
        return observe(now, d, s) | ({} if watch is None else watch(now, before, d))

    p = p._replace(v=ridge_top(p.w, d, s)) if s.ridge else p
    state, curves = along(step, training_loop.init(tx, p), record, s.epochs // s.every, s.every, known)
    return Run(state.params, curves)


def along(
    step: Callable[[training_loop.State], training_loop.State],
    start: training_loop.State,
    record: Callable[[Any, Any], dict[str, Array]],
    samples: int,
    every: int,
    known: float,
) -> tuple[training_loop.State, dict[str, Float[Array, "t ..."]]]:
    """Train until the test accuracy is ``known``: the last state, and records of the weights and those at the record before.

    Among the records is ``test_accuracy``.
    """

    def advance(carry: tuple[training_loop.State, Array], _: None) -> tuple[tuple[training_loop.State, Array], dict[str, Array]]:
        before, accuracy = carry
        state = jax.lax.fori_loop(0, jnp.where(accuracy >= known, 0, every), lambda _, x: step(x), before)
        now = record(state.params, before.params)
        return (state, now["test_accuracy"]), now

    first = record(start.params, start.params)
    (state, _), later = jax.lax.scan(advance, (start, first["test_accuracy"]), length=samples)
    return state, jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)


def observe(p: model.Params, d: Data, s: Training) -> dict[str, Float[Array, ""]]:
    """Losses and accuracies on pairs that are trained on, and on all others."""
    return scores(outputs(p, d, s.activation), d, s.objective)


def scores(o: Float[Array, "b r M"], d: Data, objective: str = "mse") -> dict[str, Float[Array, ""]]:
    """The same from centred outputs for all pairs."""
    if objective == "mse":
        each = jnp.sum(jnp.square(_residual(o, d.labels, "mse")), -1)
    else:
        each = -jnp.take_along_axis(jax.nn.log_softmax(o, -1), d.labels[..., None], -1)[..., 0]
    right = (jnp.argmax(o, -1) == d.labels).astype(o.dtype)
    learned, real = d.number < d.used, d.number < o.shape[-1] ** 2
    parts = {}
    for name, only in (("train", learned), ("test", real & ~learned)):
        number = jnp.sum(only).astype(o.dtype)
        parts[f"{name}_loss"] = jnp.sum(jnp.where(only, each, 0)) / number
        parts[f"{name}_accuracy"] = jnp.sum(jnp.where(only, right, 0)) / number
    return parts


def _centred(v: Float[Array, "K M"]) -> Float[Array, "K M"]:
    return v - jnp.mean(v, 1, keepdims=True)


def _residual(o: Float[Array, "... M"], labels: Int[Array, "..."], objective: str) -> Float[Array, "... M"]:
    order = o.shape[-1]
    aim = (labels[..., None] == jnp.arange(order)).astype(o.dtype)
    return o - aim + 1 / order if objective == "mse" else jax.nn.softmax(o, -1) - aim


def make_step(s: Training, d: Data) -> tuple[Callable[[training_loop.State], training_loop.State], optax.GradientTransformation]:
    """One step of training, as a function of its state, and the optimiser that makes the first state."""
    tx = make_optimizer(s)

    def step(state: training_loop.State) -> training_loop.State:
        slope = gradient(state.params, d, s)
        updates, opt = tx.update(slope, state.opt, state.params)
        p = optax.apply_updates(state.params, updates)
        p = p._replace(v=ridge_top(p.w, d, s)) if s.ridge else p
        return training_loop.State(training_loop.learned(state.params, p), opt, state.step + 1)

    return step, tx


def make_optimizer(s: Training) -> optax.GradientTransformation:
    """The setting's optimiser, with weight decay in the layers that have it."""
    apart = [(s.decayed == "both") | (s.decayed == layer) for layer in ("hidden", "top")]
    decay = model.Params(*(jnp.where(on, jnp.asarray(s.decay, s.dtype), 0) for on in apart))
    if s.optimizer.startswith("muon"):
        turn = muon(s.turn, decay.w, orthogonal="polar" if s.optimizer == "muon_polar" else "newton_schulz")
        return optax.partition({"w": turn, "v": _adam(s, _decaying(decay.v))}, model.Params._make(("w", "v")))
    if s.optimizer == "adamw":
        return optax.chain(optax.scale_by_adam(), _decaying(decay), optax.scale_by_learning_rate(s.lr))
    if s.optimizer == "sgd":
        return optax.chain(_decaying(decay), optax.sgd(s.lr, momentum=MOMENTUM))
    return _adam(s, _decaying(decay))


def _adam(s: Training, decaying: optax.GradientTransformation) -> optax.GradientTransformation:
    return optax.chain(decaying, optax.scale_by_adam(), optax.scale_by_learning_rate(s.lr))


def _decaying(decay: model.Params | Float[Array, ""]) -> optax.GradientTransformation:
    """Adds decay * weights, with one decay for all weights or one for each layer."""

    def add(updates: model.Params, params: model.Params | None) -> model.Params:
        each = decay if isinstance(decay, model.Params) else jax.tree.map(lambda _: decay, updates)
        return jax.tree.map(lambda u, d, p: u + d * p, updates, each, params)

    return optax.stateless(add)
