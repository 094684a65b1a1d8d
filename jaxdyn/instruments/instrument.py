"""What an instrument is: a question put to a model's weights, the numbers that answer it, and what theory expects of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xarray as xr
from jaxtyping import Array, Int, PyTree

from jaxdyn import stats
from jaxdyn.nn import Transformer, choices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.instruments.moment import Moment


__all__ = [
    "Asked",
    "Cost",
    "Instrument",
    "Model",
    "NEEDS",
    "NotApplicable",
    "Number",
    "Table",
    "Tick",
    "exponential",
    "extreme",
    "lacks",
    "need",
    "number",
]

Tick = Callable[[float], None]  # is told which share of an instrument's work has been done since the last time
Tokens = Int[np.ndarray, "piece n"]


class Model(Protocol):
    """What instruments read: a network, its weights, and a tokenizer if it has one (:class:`jaxdyn.models.Model`)."""

    @property
    def shape(self) -> Transformer:
        """The network."""
        ...

    @property
    def params(self) -> PyTree:
        """Its weights."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer; None: it has none."""
        ...


class NotApplicable(Exception):
    """Raised by an instrument that has nothing to measure in this model; the message is a sentence that says why."""


NEEDS: dict[str, tuple[Callable[[Transformer], bool], str]] = {  # of a network; why there is nothing without
    "shares": (
        lambda s: set(choices.names(s.attention)) <= {"softmax", "zero_sink", "sink_bias"},
        "The weights of this network's attention are no shares of a whole, which this is about.",
    ),
    "softmax": (
        lambda s: choices.names(s.attention) == ("softmax",) and not s.sink_token,
        "Policies of eviction are for softmax attention without a sink token of its own.",
    ),
    "several keys": (
        lambda s: s.window is None or s.window > 2 - s.sees_itself,
        "A query of this network sees one key at most: whatever it asks for, attention is the same.",
    ),
    "causal": (lambda s: s.causal, "Tokens of this network see later ones, so that it cannot read a text token by token."),
    "sees itself": (lambda s: s.sees_itself, "Policies of eviction are for networks whose tokens attend to themselves, too."),
    "logits": (
        lambda s: s.logits == s.vocabulary,
        "This network does not give one logit for each token, so that it has no loss of next tokens.",
    ),
    "MLP": (lambda s: s.mlp != "none", "This network has no MLP."),
    "heads' matrix": (
        lambda s: s.project and not s.output_gate,
        "What a head of this network writes into the stream is not the product with a matrix alone.",
    ),
}


def lacks(shape: Transformer, *names: str) -> str:
    """The sentence of the first of these :data:`NEEDS` that a network lacks; empty if it has them all."""
    return next((sentence for holds, sentence in map(NEEDS.__getitem__, names) if not holds(shape)), "")


def need(shape: Transformer, *names: str) -> None:
    """Raises :class:`NotApplicable` for a network that lacks one of these :data:`NEEDS`."""
    if sentence := lacks(shape, *names):
        raise NotApplicable(sentence)


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is read along training: a network, the names of its data and of its optimizer, whether all steps see the same batch."""

    shape: Transformer
    data: str
    optimizer: str
    same_batch: bool


@dataclasses.dataclass(frozen=True)
class Cost:
    """Floating-point operations of an instrument, and the bytes that it needs besides the model's parameters; both rough."""

    flops: float
    bytes: float


@dataclasses.dataclass(frozen=True)
class Number:
    """One number that an instrument shows.

    Args:
        name: what it is.
        value: the number, a mean over pieces of text.
        low, high: its 95% interval over pieces; NaN where there is none.
        expected: what theory, a paper or the mechanism switched off says; None: nothing.
        says: who says so.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    expected: float | None = None
    says: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of published numbers with this model's among them; the first row is the model's."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    source: str


@dataclasses.dataclass(frozen=True)
class Instrument:
    """One instrument.

    Args:
        name: the word of the command line.
        title: what it shows, in a few words.
        theory: what theory predicts, in a sentence or two, with mathematics between dollar signs.
        caption: what is on the figure's axes and what its bands mean.
        source: of definitions and predictions.
        pieces: how many pieces of the text it reads, at most; 0: it reads none.
        cost: ``cost(shape, tokens)``, before anything runs.
        measure: ``measure(model, tokens, tick)``: everything that it observes, with the dimension ``piece`` where it depends on
            the text. It raises :class:`NotApplicable` where there is nothing to observe.
        predict: ``predict(ds)``: what theory, a null or a paper expects, under the names of what was measured.
        numbers: ``numbers(ds)``: what the page shows in digits.
        plot: ``plot(ds, figure)``.
        traces: ``traces(ds)``: what is drawn along training, by the label of an axis; each has the dimension piece or not, and at
            most one more.
        table: ``table(ds)``: published rows.
        read: ``read(moment)``, pure: what ``traces`` shows, by label, of a network in training and the first sequences of its
            batch. None: it reads checkpoints only.
        dims: of each of these readings the name of its axis, such as "layer"; empty: it is one number.
        needs: what the network must have to be read along training, among :data:`NEEDS`.
        refuses: a sentence why it cannot be read along the training of something else, or an empty one.
        passes: what a reading costs, in passes over the batch forwards and backwards.
        unread: why it reads checkpoints only, as the end of a sentence.
    """

    name: str
    title: str
    theory: str
    caption: str
    source: str
    pieces: int
    cost: Callable[[Transformer, Tokens], Cost]
    measure: Callable[[Model, Tokens, Tick], xr.Dataset]
    predict: Callable[[xr.Dataset], xr.Dataset]
    numbers: Callable[[xr.Dataset], list[Number]]
    plot: Callable[[xr.Dataset, Figure], None]
    traces: Callable[[xr.Dataset], Mapping[str, xr.DataArray]]
    table: Callable[[xr.Dataset], Table] | None = None
    read: Callable[[Moment], dict[str, Array]] | None = None
    dims: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    needs: tuple[str, ...] = ()
    refuses: Callable[[Asked], str] = lambda asked: ""
    passes: float = 0.1
    unread: str = "it reads checkpoints only"

    def why_not(self, asked: Asked) -> str:
        """The sentence that says why it cannot be read along this training; empty if it can."""
        return lacks(asked.shape, *self.needs) or self.refuses(asked)


def number(name: str, values: Any, expected: Any = None, says: str = "") -> Number:
    """The mean over pieces and its Student t interval at 95%; values without pieces have no interval.

    A piece of which any value is not finite is left out, and so is each such value where there are no pieces; the name says so.
    """
    values = (values if isinstance(values, xr.DataArray) else xr.DataArray(values)).astype(float)
    over = "piece" if "piece" in values.dims else "value"
    rows = values.mean([dim for dim in values.dims if dim != "piece"], skipna=False) if over == "piece" else values
    rows = np.ravel(rows.values)
    fine = rows[np.isfinite(rows)]
    expected = None if expected is None else float(np.mean(np.asarray(expected, float)))
    if fine.size < rows.size > 1:
        name = f"{name}, in {fine.size} of {rows.size} {over}s"
    if over == "value" or not fine.size:
        return Number(name, float(fine.mean()) if fine.size else math.nan, expected=expected, says=says)
    value, low, high = (float(x) for x in stats.mean_interval(fine, "piece"))
    return Number(name, value, low, high, expected, says)


def exponential(n: Number, expected: float | None = None, says: str = "") -> Number:
    """A number whose logarithm was measured."""
    with np.errstate(over="ignore"):
        value, low, high = (float(np.exp(x)) for x in (n.value, n.low, n.high))
    return Number(n.name, value, low, high, expected, says)


def extreme(values: xr.DataArray, dim: str, *, largest: bool = False) -> int:
    """Where the mean over all other dimensions is least, or largest, along one; the first place if no mean is finite."""
    mean = values.mean([other for other in values.dims if other != dim]).values
    worst = -np.inf if largest else np.inf
    filled = np.where(np.isfinite(mean), mean, worst)
    return int(filled.argmax() if largest else filled.argmin())
