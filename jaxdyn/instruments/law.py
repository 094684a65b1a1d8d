r"""A law: one quantity of a network in training, its measurement, and what a theory says of it from other measurements.

At every moment :attr:`Law.read` gives named arrays. Those among ``own`` are the measured side's: :attr:`Law.measure` sees them
along the whole run, and :attr:`Law.predict` sees all others, and of its own quantity the start. So no prediction can be its
measurement.

.. math:: e(t) = \max_{s \le t} \|p(s) - m(s)\| \Big/ \max_{s \le t} \|m(s) - m(0)\|

is the error of a law until t, of predictions p and measurements m, in units of how far the measured quantity has moved: if nothing
is said to move, it is 1. A law of what hardly moves, such as a share, may be judged by the largest mean absolute difference
instead. It holds until the error exceeds its bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float

from jaxdyn.errors import UsageError
from jaxdyn.instruments.instrument import NEEDS, Asked, lacks
from jaxdyn.instruments.moment import Moment

__all__ = ["Asked", "Law", "Sides", "errors", "holds_until", "largest_so_far", "nothing_moves", "shuffled", "sides"]

Curves = Mapping[str, Float[Array, "time ..."] | Bool[Array, "time ..."]]


def nothing_moves(predicted: Float[Array, "time ..."], measured: Float[Array, "time ..."]) -> Float[Array, "time ..."]:
    """The measured quantity stays where it is at the start."""
    return jnp.broadcast_to(measured[:1], measured.shape)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Law:
    """One law.

    Args:
        name: the word of the command line.
        title: what it says, in at most 70 characters.
        theory: what theory predicts, in a sentence or two, with mathematics between dollar signs.
        source: where theory says so.
        read: ``read(moment)``, a dict of arrays; with a ``memory``, ``read(moment, memory)``, and the pair of both.
        own: names of readings that are the measured side's.
        measure: ``measure(own)``, from curves along time, an array whose first axis is time.
        predict: ``predict(others)``, an array of the same shape, from the curves of all other readings, ``step`` and ``lr``, and of
            each own reading the ``start_``, its first value.
        speaks: ``speaks(curves)``, from the curves of all readings, at which times the theory says anything; by default at all.
        dims: names of the axes after time.
        off: the mechanism switched off, ``off(predicted, measured)``: by default nothing moves.
        bound: the largest error at which the law holds.
        absolute: whether the error is an absolute difference.
        needs: what the network must have, among :data:`~jaxdyn.instruments.instrument.NEEDS`.
        data: names of the data of which it can be asked; empty: any.
        optimizers: of which it can be asked; empty: any.
        same_batch: whether it is about descent on one batch.
        refuses: a sentence why it cannot be asked of something else, or an empty one.
        memory: ``memory(moment)``, what is carried from one reading to the next.
        cost: what a reading costs, in passes over the batch forwards and backwards.
    """

    name: str
    title: str
    theory: str
    source: str
    read: Callable[..., Any]
    own: tuple[str, ...]
    measure: Callable[[Curves], Float[Array, "time ..."]]
    predict: Callable[[Curves], Float[Array, "time ..."]]
    speaks: Callable[[Curves], Bool[Array, " time"]] | None = None
    dims: str = ""
    off: Callable[..., Float[Array, "time ..."]] = nothing_moves
    bound: float
    absolute: bool = False
    needs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    optimizers: tuple[str, ...] = ()
    same_batch: bool = False
    refuses: Callable[[Asked], str] = lambda asked: ""
    memory: Callable[[Moment], Any] | None = None
    cost: float = 1.0

    def __post_init__(self) -> None:
        """Refuse needs that nothing knows."""
        if unknown := [name for name in self.needs if name not in NEEDS]:
            raise UsageError(f"needs={unknown[0]!r} of the law {self.name} is not allowed: needs are among {', '.join(NEEDS)}")

    def why_not(self, asked: Asked) -> str:
        """The sentence that says why the law cannot be asked; empty if it can."""
        if sentence := lacks(asked.shape, *self.needs):
            return sentence
        if self.data and asked.data not in self.data:
            return f"It is asked of the data {' or '.join(self.data)}, not of {asked.data}."
        if self.optimizers and asked.optimizer not in self.optimizers:
            return f"It is about the optimizer {' or '.join(self.optimizers)}, not {asked.optimizer}."
        if self.same_batch and not asked.same_batch:
            return "It is about descent on one batch, and each step has a new one."
        return self.refuses(asked)


class _Readings(dict[str, Any]):
    """Curves by name, given to a side of a law, which is told what it may ask for."""

    def __init__(self, curves: Mapping[str, Any], law: str, side: str) -> None:
        super().__init__(curves)
        self.law, self.side = law, side

    def __missing__(self, name: str) -> Any:
        raise UsageError(f"{self.side} of the law {self.law} asks for {name!r}, and it is given {', '.join(self)}")


class Sides(NamedTuple):
    """Both sides of a law at all readings, and where it says anything."""

    predicted: Float[Array, "time ..."]
    measured: Float[Array, "time ..."]
    speaks: Bool[Array, " time"]


def sides(law: Law, curves: Curves, step: Float[Array, " time"], lr: Any) -> Sides:
    """Both sides of a law from the curves of its readings.

    Raises:
        UsageError: for a law whose sides have different shapes, whose own readings are not among those that it reads, or that
            reads something under a name that ``predict`` is given something else by.
    """
    given = {"step", "lr", *(f"start_{name}" for name in law.own)}
    if taken := sorted(given & set(curves)):
        raise UsageError(
            f"the law {law.name} is not allowed: it reads {taken[0]!r}, and predict is given {', '.join(sorted(given))} besides "
            "what is read; call it otherwise"
        )
    if missing := [name for name in law.own if name not in curves]:
        raise UsageError(f"own={missing[0]!r} is not allowed: the law {law.name} reads {', '.join(sorted(curves))}")
    own = {name: curves[name] for name in law.own}
    others = {name: curve for name, curve in curves.items() if name not in law.own}
    others |= {f"start_{name}": curve[0] for name, curve in own.items()} | {"step": step, "lr": jnp.asarray(lr)}
    measured = law.measure(_Readings(own, law.name, "measure"))
    predicted = law.predict(_Readings(others, law.name, "predict"))
    if jnp.shape(measured) != jnp.shape(predicted):
        shapes = f"measured {jnp.shape(measured)}, predicted {jnp.shape(predicted)}"
        raise UsageError(f"the law {law.name} is not allowed: its sides have different shapes, {shapes}")
    if jnp.ndim(measured) != 1 + len(law.dims.split()):
        shape, axes = jnp.shape(measured), "names of the axes after time"
        raise UsageError(f"dims={law.dims!r} of the law {law.name} is not allowed: they are the {axes}, and the shape is {shape}")
    everywhere = jnp.ones(step.shape, bool)
    return Sides(predicted, measured, everywhere if law.speaks is None else law.speaks(curves) & everywhere)


def errors(
    predicted: xr.DataArray, measured: xr.DataArray, speaks: xr.DataArray, dims: Sequence[str], absolute: bool = False
) -> xr.DataArray:
    """The error of a law until every time, for each run; NaN before theory says anything.

    Where theory speaks, it is infinite from a prediction on that is not a number, and NaN from a measurement on that is none: they
    would pass as what theory says nothing of. It is infinite, too, where nothing moves to the end and theory has movement.

    Args:
        predicted: what theory says, with the dimension ``time``.
        measured: the same of what was measured.
        speaks: where they are compared.
        dims: a law's own dimensions, over which norms are taken.
        absolute: the largest mean absolute difference, instead of that over the largest movement.
    """
    gap = abs(predicted - measured).fillna(np.inf).where(speaks)
    unknown = (measured.isnull().any(dims) if dims else measured.isnull()) & speaks
    known = unknown.cumsum("time") == 0
    if absolute:
        return largest_so_far(gap.mean(dims) if dims else gap).where(known)
    moved = (measured - measured.isel(time=0, drop=True)).where(speaks)
    far, size = ((x**2).sum(dims, min_count=1) ** 0.5 if dims else abs(x) for x in (gap, moved))
    total = largest_so_far(size)
    wrong = largest_so_far(far)
    still = (total == 0) & ~(total > 0).any("time")  # to the end
    return xr.where(still & (wrong > 0), np.inf, wrong / total.where(total > 0)).transpose(*wrong.dims).where(known)


def largest_so_far(x: xr.DataArray) -> xr.DataArray:
    """The largest value until each time; NaN before the first number."""
    axis = x.get_axis_num("time")
    return x.copy(data=np.fmax.accumulate(x.values, axis=axis))


def holds_until(error: xr.DataArray, bound: float) -> xr.DataArray:
    """The number of the last time until which the error is within its bound; -1: at none.

    The error may fall again, as the measured quantity moves farther.
    """
    places = xr.DataArray(np.arange(error.sizes["time"]), dims="time")
    return places.where(error <= bound, -1).max("time").astype(int)


def shuffled(values: xr.DataArray) -> xr.DataArray:
    """The values at other times: the control in which a prediction of a course must fail."""
    order = np.random.default_rng(0).permutation(values.sizes["time"])
    if (order == np.arange(order.size)).all():  # of two times it is
        order = order[::-1]
    return values.copy(data=values.isel(time=order).transpose(*values.dims).values)
