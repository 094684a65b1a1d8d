"""Full Adam, GaLore, its followers and its rivals under one interface: a start of the weights, and one optax transformation.

Every method trains the same tree of weights by the same step, so that a sweep over methods differs in nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax
from jaxtyping import Array, PRNGKeyArray, PyTree

from jaxdyn.errors import UsageError, number, require, whole
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.axes import Dims, hidden_matrices
from jaxdyn.optim.factors import lora, low_rank, relora, spectral_start
from jaxdyn.optim.fira_apollo import apollo, fira
from jaxdyn.optim.projection import MOMENTS, Lazy, galore, golore
from jaxdyn.optim.subspace import Subspace
from jaxdyn.optim.trees import on_arrays, rank_known

__all__ = ["METHODS", "Method", "Options", "method"]


class Method(NamedTuple):
    """``start(params) -> params``, then an ordinary optimizer whose updates are added."""

    start: Callable[[PyTree], PyTree]
    tx: optax.GradientTransformation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The options of all methods; each method reads those that it has.

    Args:
        rank: of bases and factors; at most the smaller side of a matrix is used.
        every: steps between two bases or, for ReLoRA, two merges; None: the first basis stays (ReLoRA needs a number).
        scale: GaLore's and Fira's factor alpha.
        side: which side is projected.
        finder: how bases are found.
        moments: what becomes of the moments when a basis is found.
        alpha: LoRA's factor is alpha over the rank that is used.
        switch: step from which GoLore's bases are random.
        stored: how Adam's moments are stored.
        b1, b2, eps: of Adam.
        weight_decay: decoupled, times the rate, as optax.adamw's; of all leaves or, for LoRA and its like, of the factors.
    """

    rank: int = 16
    every: int | Array | None = 200
    scale: float = 0.25
    side: str = "short"
    finder: str = "svd"
    moments: str = "keep"
    alpha: float = 32.0
    switch: int | Array = 0
    stored: str = "parameter"
    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-6
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", rank_known(self.rank))
        if self.every is not None:
            object.__setattr__(self, "every", whole("every", self.every, least=1, traced=True))
        object.__setattr__(self, "switch", whole("switch", self.switch, least=0, traced=True))
        number("scale", self.scale, least=0, traced=True)
        number("alpha", self.alpha, above=0, traced=True)
        number("weight_decay", self.weight_decay, least=0, traced=True)
        require(self, self.moments in MOMENTS, f"moments is one of {', '.join(MOMENTS)}", "moments")
        _ = self.subspace, self.adam  # what they refuse is refused here

    @property
    def subspace(self) -> Subspace:
        """The bases' description."""
        return Subspace(rank=self.rank, side=self.side, finder=self.finder)

    @property
    def adam(self) -> optax.GradientTransformation:
        """Adam's direction."""
        return adam_direction(self.b1, self.b2, self.eps, stored=self.stored)


Builder = Callable[[Options, Any, dict[str, Any]], optax.GradientTransformation]


def _uphill(make: Callable[[Options, dict[str, Any]], optax.GradientTransformation]) -> Builder:
    """A method that gives a direction: the rate comes after it."""
    return lambda o, lr, places: optax.chain(make(o, places), *_decay(o), _rate(lr))


def _factors(o: Options, lr: Any) -> optax.GradientTransformation:
    """Adam with its rate, for methods that train factors."""
    return optax.chain(o.adam, *_decay(o), _rate(lr))


def _decay(o: Options) -> list[optax.GradientTransformation]:
    """Decoupled weight decay, if there is any; an array may be traced at the next step, where the state has the same structure."""
    none = not isinstance(o.weight_decay, jax.Array) and o.weight_decay == 0
    return [] if none else [optax.add_decayed_weights(o.weight_decay)]


def _rate(lr: Any) -> optax.GradientTransformation:
    """The rate; updates keep their dtype, whatever that of an array or of a schedule's value."""

    def schedule(count: Array) -> Any:
        value = lr(count)
        number("lr(count)", value, traced=True)
        return value

    rate = optax.scale_by_learning_rate(schedule if callable(lr) else lr)

    def update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        scaled, state = rate.update(updates, state, params)
        return jax.tree.map(lambda old, new: new.astype(old.dtype), updates, scaled), state

    return optax.GradientTransformation(rate.init, update)


def _galore(o: Options, places: dict[str, Any], **more: Any) -> optax.GradientTransformation:
    given = {"every": o.every, "scale": o.scale, "moments": o.moments}
    return galore(o.adam, more.pop("subspace", o.subspace), **{**given, **places, **more})


def _apollo(o: Options, places: dict[str, Any], rank: int, scale: float, tensor: bool) -> optax.GradientTransformation:
    gaussian = Subspace(rank=rank, side=o.side, finder="gaussian")
    return apollo(o.adam, gaussian, every=o.every, scale=scale, tensor=tensor, **places)


def _relora(o: Options, lr: Any, places: dict[str, Any]) -> optax.GradientTransformation:
    require(o, o.every is not None, "ReLoRA needs a number of steps between merges", "every")
    return relora(_factors(o, lr), o.rank, every=o.every, alpha=o.alpha, **places)


def _random(o: Options) -> Subspace:
    return dataclasses.replace(o.subspace, finder="orthonormal")


METHODS: dict[str, Builder] = {
    "full": _uphill(lambda o, places: o.adam),
    "galore": _uphill(_galore),
    "random": _uphill(lambda o, places: _galore(o, places, subspace=_random(o))),
    "golore": _uphill(lambda o, places: _galore(o, places, finder=golore(o.subspace, o.switch))),
    "q_galore": _uphill(lambda o, places: _galore(o, places, lazy=Lazy())),
    "fira": _uphill(lambda o, places: fira(o.adam, o.subspace, every=o.every, scale=o.scale, **places)),
    "apollo": _uphill(lambda o, places: _apollo(o, places, o.rank, 1.0, False)),
    "apollo_mini": _uphill(lambda o, places: _apollo(o, places, 1, 128**0.5, True)),
    "lora": lambda o, lr, places: lora(_factors(o, lr), o.rank, alpha=o.alpha, **places),
    "relora": _relora,
    "low_rank": lambda o, lr, places: low_rank(_factors(o, lr), o.rank, **places),
}


def method(
    name: str,
    lr: float | Array | optax.Schedule,
    options: Options,
    *,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
) -> Method:
    """One of :data:`METHODS` at a rate, which may be traced or a schedule; parameters may be arrays or flax's variables.

    Args:
        name: the method.
        lr: learning rate of all leaves: a number that is at least 0, or a schedule.
        options: what the methods share.
        dims: which leaves are matrices, and how.
        key: of random bases and of LoRA's factors.

    Raises:
        UsageError: for an unknown name, a rate that is neither, or ReLoRA without a period; when used, as the methods.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise UsageError(f"method={name} is not allowed: it is one of {', '.join(METHODS)}")
    if key is not None and not isinstance(key, jax.Array):
        raise UsageError(f"key={key!r:.60} is not allowed: it is a key of JAX, such as jax.random.key(0)")
    if not callable(lr):
        number("lr", lr, least=0, traced=True)
    start = (lambda params: spectral_start(params, options.rank, dims)) if name == "low_rank" else (lambda params: params)
    places = {"dims": dims, "key": jax.random.key(0) if key is None else key}
    return Method(start, on_arrays(METHODS[name](options, lr, places)))
