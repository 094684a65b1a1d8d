"""What an instrument is: a question put to a model's weights, the numbers that answer it, and what theory expects of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from jaxdyn import stats
from jaxdyn.nn.decoder import Decoder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxdyn.models.loading import Model

__all__ = ["Cost", "Instrument", "NotApplicable", "Number", "Table", "Tick", "exponential", "number"]

Tick = Callable[[float], None]  # is told which share of an instrument's work has been done since the last time
Tokens = Int[np.ndarray, "piece n"]


class NotApplicable(Exception):
    """Raised by an instrument that has nothing to measure in this model; the message is a sentence that says why."""


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
        cost: ``cost(shape, tokens)``, before anything runs.
        measure: ``measure(model, tokens, tick)``: everything that it observes, with the dimension ``piece`` where it depends on
            the text. It raises :class:`NotApplicable` where there is nothing to observe.
        predict: ``predict(ds)``: what theory, a null or a paper expects, under the names of what was measured.
        numbers: ``numbers(ds)``: what the page shows in digits.
        plot: ``plot(ds, figure)``.
        traces: ``traces(ds)``: what is drawn along training, by the label of an axis; each has the dimension piece or not, and at
            most one more.
        table: ``table(ds)``: published rows.
    """

    name: str
    title: str
    theory: str
    caption: str
    source: str
    cost: Callable[[Decoder, Tokens], Cost]
    measure: Callable[[Model, Tokens, Tick], xr.Dataset]
    predict: Callable[[xr.Dataset], xr.Dataset]
    numbers: Callable[[xr.Dataset], list[Number]]
    plot: Callable[[xr.Dataset, Figure], None]
    traces: Callable[[xr.Dataset], Mapping[str, xr.DataArray]]
    table: Callable[[xr.Dataset], Table] | None = None


def number(name: str, values: Any, expected: Any = None, says: str = "") -> Number:
    """The mean over pieces and its Student t interval at 95%; values without pieces have no interval."""
    values = values if isinstance(values, xr.DataArray) else xr.DataArray(values)
    others = [dim for dim in values.dims if dim != "piece"]
    values = values.astype(float).mean(others)
    expected = None if expected is None else float(np.mean(np.asarray(expected, float)))
    if "piece" not in values.dims:
        return Number(name, float(values), expected=expected, says=says)
    value, low, high = (float(x) for x in stats.mean_interval(values, "piece"))
    return Number(name, value, low, high, expected, says)


def exponential(n: Number, expected: float | None = None, says: str = "") -> Number:
    """A number whose logarithm was measured."""
    return Number(n.name, math.exp(n.value), math.exp(n.low), math.exp(n.high), expected, says)
