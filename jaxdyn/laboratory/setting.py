"""What one run of the laboratory is: data, a variant of the transformer, an optimizer, and what is read.

The *plain* block has softmax attention with one head, no positions, no norm, a ReLU MLP, biases nowhere, and is trained by plain
descent: what theories assume as far as a transformer can have it. Every other network differs from it in named fields.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from jaxdyn import nn, optim
from jaxdyn.engine.claims.fields import Swept
from jaxdyn.engine.claims.observables import Observables, named, observables
from jaxdyn.engine.claims.ranges import field
from jaxdyn.engine.claims.setting import setting
from jaxdyn.errors import UsageError, require
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Asked, Law
from jaxdyn.laboratory import course
from jaxdyn.laboratory.tasks import NAMES, TASKS, Task
from jaxdyn.optim.methods import FACTORED

__all__ = [
    "Bench",
    "NETWORK",
    "UNREAD",
    "asked",
    "method_of",
    "observed",
    "plan_of",
    "reading_name",
    "shape_of",
    "task_of",
    "training_of",
]

NETWORK = (  # fields of the setting that are fields of nn.Transformer
    "width",
    "layers",
    "heads",
    "groups",
    "hidden",
    "attention",
    "sees_itself",
    "window",
    "project",
    "output_gate",
    "query_key_norm",
    "position",
    "norm",
    "norm_place",
    "mlp",
    "activation",
    "parallel",
    "tied",
    "sink_token",
    "skip",
    "residual",
    "start",
    "std",
    "dropout",
    "dtype",
)

UNREAD: dict[str, tuple[str, Callable[[Any], bool]]] = {  # fields that do nothing in some settings: what does so, and where
    "std": ("a start that is normal or gpt2 draws from it", lambda s: s.start not in ("normal", "gpt2")),
    "momentum": ("momentum, nesterov and muon have it", lambda s: s.optimizer not in ("momentum", "nesterov", "muon")),
    "hidden": ("an MLP has it", lambda s: s.mlp == "none"),
    "activation": ("an MLP has it", lambda s: s.mlp == "none"),
    "norm_place": ("norms of the stream have it", lambda s: s.norm == "none"),
    "clip": ("a sign is the same at every length of the gradient", lambda s: s.optimizer == "sign"),
    "batch": ("with same=True all steps see the batch of the size reading", lambda s: s.same),
}


@setting
class Bench:
    """One run.

    Args:
        data: the name of a source of sequences.
        width: numbers of the residual stream.
        layers: blocks.
        heads: of queries.
        groups: heads of keys and values, which queries share; None: one for each head.
        hidden: units of an MLP; None: four times the width.
        attention: one of nn.KINDS, or a function of one's own.
        sees_itself: a token attends to itself, too.
        window: positions that a query sees, its own included; None: all before it.
        project: a matrix after the heads; without it they are written side by side.
        output_gate: heads' outputs are multiplied by the sigmoid of a linear map of the block's input.
        query_key_norm: queries and keys have root mean square 1 in every head, times a gain.
        position: none, learned, sinusoidal, rotary or alibi.
        norm: none, rms or layer.
        norm_place: pre, of what attention and MLP read; post, of the stream after each.
        mlp: none, plain or gated.
        activation: of the MLP, one of nn.ACTIVATIONS, or a function of one's own; of a gated MLP, of its gate.
        parallel: attention and MLP both read the block's input.
        tied: the read-out is the embedding.
        sink_token: a trained embedding before every sequence.
        skip: factor on the stream where something is added to it; 0: no skip connection.
        residual: factor on what is added to the stream.
        start: the rule by which weights are drawn, such as fan_in, normal or gpt2.
        std: of the weights at the start, for the rules normal and gpt2.
        dropout: share of entries that is dropped.
        dtype: of the weights.
        optimizer: one of optim.METHODS.
        lr: learning rate.
        momentum: of momentum, nesterov and muon; None: 0.9, of muon 0.95.
        weight_decay: of all weights; coupled or decoupled, as the method has it.
        clip: norm above which a gradient is clipped; None: never.
        frozen: names of weights that stay as they are drawn, joined by "+", such as "embed+v+o".
        batch: sequences of a step.
        same: whether all steps see the same batch, that which is read.
        steps: of training.
        every: steps between two readings.
        reading: sequences that are read.
    """

    data: str = "classes"
    width: int = field(64, at_least=1)
    layers: int = field(2, at_least=1)
    heads: int = field(1, at_least=1)
    groups: int | None = None
    hidden: int | None = None
    attention: str = "softmax"
    sees_itself: bool = True
    window: int | None = None
    project: bool = True
    output_gate: bool = False
    query_key_norm: bool = False
    position: str = "none"
    norm: str = "none"
    norm_place: str = "pre"
    mlp: str = "plain"
    activation: str = "relu"
    parallel: bool = False
    tied: bool = False
    sink_token: bool = False
    skip: Swept = 1.0
    residual: Swept = 1.0
    start: str = "fan_in"
    std: Swept = field(0.02, at_least=0)
    dropout: Swept = field(0.0, at_least=0, below=1)
    dtype: str = "float32"
    optimizer: str = "sgd"
    lr: Swept = field(0.1, at_least=0)
    momentum: float | None = None
    weight_decay: Swept = field(0.0, at_least=0)
    clip: float | None = None
    frozen: str = ""
    batch: int = field(64, at_least=1)
    same: bool = False
    steps: int = field(400, at_least=1)
    every: int = field(20, at_least=1)
    reading: int = field(64, at_least=1)

    def __post_init__(self) -> None:
        require(self, self.data in TASKS, f"data is one of {', '.join(TASKS)}", "data")
        require(self, self.steps % self.every == 0, "every divides steps", "every", "steps")
        factored = self.optimizer not in FACTORED
        require(self, factored, f"{self.optimizer} trains factors, of which no instrument reads the network", "optimizer")
        if self.data == "facts":  # others would never be trained
            size = "reading" if self.same else "batch"
            require(self, getattr(self, size) >= 2 * NAMES, f"a batch has all {2 * NAMES} facts, or more", size)
        shape_of(self), method_of(self)  # what they refuse is refused here


def task_of(s: Any) -> Task:
    """The source of sequences."""
    return TASKS[s.data]


def shape_of(s: Any) -> nn.Transformer:
    """The network."""
    task = task_of(s)
    fields = {name: getattr(s, name) for name in NETWORK}
    if s.mlp == "none":
        fields["hidden"] = None
    elif s.hidden is None:
        fields["hidden"] = 4 * s.width
    return nn.Transformer(vocabulary=task.vocabulary, length=task.length + s.sink_token, **fields)


def method_of(s: Any, key: PRNGKeyArray | None = None) -> optax.GradientTransformation:
    """The optimizer."""
    options = optim.Options(momentum=s.momentum, weight_decay=s.weight_decay, clip=s.clip)
    tx = optim.method(s.optimizer, s.lr, options, key=key).tx
    return optax.chain(tx, optax.stateless(functools.partial(_hold, _frozen(s)))) if s.frozen else tx


def _frozen(s: Any) -> frozenset[str]:
    """Names of weights that stay as they are; others than the network's are refused."""
    shape = shape_of(s).known
    params = jax.eval_shape(lambda: nn.network(shape).init(jax.random.key(0, impl="threefry2x32")))
    names = {*params, *params["blocks"]} - {"blocks"}
    frozen = frozenset(s.frozen.split("+"))
    require(s, frozen <= names, f"frozen are some of {', '.join(sorted(names))}", "frozen")
    return frozen


def _hold(frozen: frozenset[str], updates: PyTree, params: PyTree) -> PyTree:
    """Updates without those of the weights of these names."""
    del params

    def update(path: Any, given: Array) -> Array:
        return jnp.zeros_like(given) if path[-1].key in frozen else given

    return jax.tree.map_with_path(update, updates)


def plan_of(s: Any) -> course.Plan:
    """How long and on how much it trains."""
    return course.Plan(s.steps, s.every, s.batch, s.reading, s.same, _frozen(s) if s.frozen else frozenset())


def training_of(s: Any, key: PRNGKeyArray | None = None) -> course.Training:
    """The network, its sequences, the optimizer with what it draws, and the plan."""
    return course.Training(shape_of(s), task_of(s), method_of(s, key), plan_of(s), s.lr)


def asked(s: Any) -> Asked:
    """What laws and instruments are asked of."""
    return Asked(shape_of(s), s.data, s.optimizer, s.same)


def observed(s: Any, watched: Sequence[Law | Instrument], key: PRNGKeyArray) -> Observables:
    """The observables of a run: both sides of every law under its name, its own axes after time, readings, and the loss.

    A law that cannot be asked of the network has zeros on both sides, and never speaks. What is no finite number is stored as 0,
    with the times at which it is there: it is about one law, and the run has not diverged. An instrument that cannot be asked is
    left out, and a reading is stored as it is.
    """
    laws = [one for one in watched if isinstance(one, Law)]
    instruments = [one for one in watched if isinstance(one, Instrument) and not one.why_not(asked(s))]
    k_method, k_run = jax.random.split(key)
    training = training_of(s, k_method)
    found = course.run(training, [*laws, *instruments], k_run)
    silent = [law.name for law in laws if law.why_not(asked(s))]
    sides = {name: jax.tree.map(jnp.zeros_like, both) if name in silent else both for name, both in found.laws.items()}

    def along(law: Law, value: Array) -> Any:
        return named(_filled(value), " ".join(["time", *(f"{law.name}_{dim}" for dim in law.dims.split())]))

    recorded = {"loss": named(found.loss, "time")}
    for one in instruments:
        recorded |= _readings(one, found.readings[one.name])
    for law in laws:
        each = sides[law.name]
        recorded[f"speaks_{law.name}"] = named(each.speaks, "time")
        recorded[f"known_predicted_{law.name}"] = named(_known(each.predicted), "time")
        recorded[f"known_measured_{law.name}"] = named(_known(each.measured), "time")
    return observables(
        predicted={law.name: along(law, sides[law.name].predicted) for law in laws},
        measured={law.name: along(law, sides[law.name].measured) for law in laws},
        recorded=recorded,
        status=found.status,
        coords={"time": range(0, training.plan.steps + 1, training.plan.every)},
    )


def reading_name(one: Instrument, label: str) -> str:
    """What a reading of an instrument is called in a Dataset."""
    return f"{one.name}: {label}"


def _readings(one: Instrument, read: dict[str, Array]) -> dict[str, Any]:
    """An instrument's readings along time, each with its axis."""
    if unknown := [label for label in read if label not in one.dims]:
        raise UsageError(f"the instrument {one.name} is not allowed: it reads {unknown[0]!r}, whose axis is not among its dims")
    axes = {label: " ".join(["time", *(f"{one.name}_{dim}" for dim in one.dims[label].split())]) for label in read}
    return {reading_name(one, label): named(value, axes[label]) for label, value in read.items()}


def _filled(value: Float[Array, "time ..."]) -> Float[Array, "time ..."]:
    return jnp.where(jnp.isfinite(value), value, jnp.zeros_like(value))


def _known(value: Float[Array, "time ..."]) -> Bool[Array, " time"]:
    """At which times all numbers are finite."""
    return jnp.all(jnp.isfinite(value), axis=tuple(range(1, value.ndim)))
