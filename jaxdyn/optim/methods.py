r"""Every optimizer by one name, under one interface: a start of the weights, and one optax transformation.

=================================================  =============================================================================
name                                               direction
=================================================  =============================================================================
``sgd``, ``momentum``, ``nesterov``, ``sign``      the gradient, its sum over steps, its sign (:mod:`jaxdyn.optim.momentum`)
``adam``, ``adamw``, ``adam_8bit``                 Adam, with numbers of one byte (:mod:`jaxdyn.optim.adam`, arXiv:2110.02861)
``muon``                                           matrices orthogonalised, all else by Adam (:mod:`jaxdyn.optim.muon`)
``galore``, ``random``, ``golore``, ``q_galore``   Adam in a subspace (:mod:`jaxdyn.optim.projection`)
``fira``, ``apollo``, ``apollo_mini``              states of a subspace, updates of full rank (:mod:`jaxdyn.optim.fira_apollo`)
``lora``, ``relora``, ``low_rank``                 factors (:mod:`jaxdyn.optim.factors`)
=================================================  =============================================================================

Every method trains the same tree of weights by the same step, so that a sweep over methods differs in nothing else. Names are
static, or a traced switch (``jd.Code``); numbers may be traced. With gradient g, direction N, rate gamma and decay lambda a step is

.. math:: W \leftarrow W - \gamma\, (N(g) + \lambda W) \ \text{(decoupled)}, \qquad W - \gamma\, N(g + \lambda W) \ \text{(coupled)}

Source: arXiv:1711.05101, algorithms 1 and 2; there the decoupled decay is not times gamma, as it is in optax and PyTorch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray, PyTree

from jaxdyn import train
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.errors import UsageError, number, require, whole
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.axes import Dims, hidden_matrices
from jaxdyn.optim.factors import lora, low_rank, relora, spectral_start
from jaxdyn.optim.fira_apollo import apollo, fira
from jaxdyn.optim.momentum import gradient_direction, momentum_direction, sign_direction
from jaxdyn.optim.muon import TURNS, Orthogonal, muon_direction
from jaxdyn.optim.projection import MOMENTS, Lazy, galore, golore
from jaxdyn.optim.sizes import tree_norm
from jaxdyn.optim.subspace import Subspace
from jaxdyn.optim.trees import on_arrays, rank_known

__all__ = ["DECAYS", "METHODS", "Method", "Options", "method"]

DECAYS = ("decoupled", "coupled")


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
        stored: how moments are stored, Adam's or the momentum (Muon's is in float32 at least).
        b1, b2: of Adam.
        eps: of Adam; None: 1e-8 of adam, adamw, adam_8bit and muon, else 1e-6 as in GaLore's code.
        epsilon: where eps is added, "raw" or "corrected"; None: corrected where eps is 1e-8 by default, else raw.
        momentum: beta of momentum, nesterov (None: 0.9) and muon (None: 0.95).
        orthogonal: how Muon makes a matrix orthogonal, "newton_schulz" or "polar".
        rms: root mean square of the entries of Muon's matrices at rate 1; None: scaled as in its first code, for rates of its own.
        clip: the norm of the whole gradient beyond which it is scaled down to this norm, before all else; None: it is not.
        weight_decay: lambda, of all leaves or, for LoRA and its like, of the factors.
        decay: "decoupled", added to the direction as optax.adamw's, or "coupled", added to the gradient (L2); None: coupled for
            sgd, momentum, nesterov, adam and adam_8bit, as in PyTorch, where AdamW differs from Adam by this; else decoupled.
    """

    rank: int = 16
    every: int | Array | None = 200
    scale: float | Array = 0.25
    side: str = "short"
    finder: str = "svd"
    moments: str = "keep"
    alpha: float | Array = 32.0
    switch: int | Array = 0
    stored: str = "parameter"
    b1: float | Array = 0.9
    b2: float | Array = 0.999
    eps: float | Array | None = None
    epsilon: str | None = None
    momentum: float | Array | None = None
    orthogonal: Orthogonal = "newton_schulz"
    rms: float | Array | None = 0.2
    clip: float | Array | None = None
    weight_decay: float | Array = 0.0
    decay: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", rank_known(self.rank))
        if self.every is not None:
            object.__setattr__(self, "every", whole("every", self.every, least=1, traced=True))
        object.__setattr__(self, "switch", whole("switch", self.switch, least=0, traced=True))
        number("scale", self.scale, least=0, traced=True)
        number("alpha", self.alpha, above=0, traced=True)
        number("weight_decay", self.weight_decay, least=0, traced=True)
        for name, bounds in {"momentum": {"least": 0, "below": 1}, "rms": {"above": 0}, "clip": {"above": 0}}.items():
            if getattr(self, name) is not None:
                number(name, getattr(self, name), traced=True, **bounds)
        require(self, self.moments in MOMENTS, f"moments is one of {', '.join(MOMENTS)}", "moments")
        require(self, self.orthogonal in TURNS, f"orthogonal is one of {', '.join(TURNS)}", "orthogonal")
        require(self, self.decay in (None, *DECAYS), f"decay is one of {', '.join(DECAYS)}, or None", "decay")
        _ = self.subspace, self.adam  # what they refuse is refused here

    @property
    def subspace(self) -> Subspace:
        """The bases' description."""
        return Subspace(rank=self.rank, side=self.side, finder=self.finder)

    @property
    def adam(self) -> optax.GradientTransformation:
        """Adam's direction, by default as in GaLore's code."""
        return self._adam(1e-6, "raw")

    @property
    def own_adam(self) -> optax.GradientTransformation:
        """Adam's direction, by default as in its paper, PyTorch and optax."""
        return self._adam(1e-8, "corrected")

    def _adam(self, eps: float | Array, epsilon: str) -> optax.GradientTransformation:
        eps, epsilon = eps if self.eps is None else self.eps, epsilon if self.epsilon is None else self.epsilon
        return adam_direction(self.b1, self.b2, eps, epsilon=epsilon, stored=self.stored)


Builder = Callable[[Options, Any, dict[str, Any]], optax.GradientTransformation]


def _uphill(make: Callable[[Options, dict[str, Any]], optax.GradientTransformation], **fixed: Any) -> Builder:
    """A method that gives a direction: decay and rate come around it."""

    def build(o: Options, lr: Any, places: dict[str, Any]) -> optax.GradientTransformation:
        o = dataclasses.replace(o, **fixed)
        return _around(o, lr, make(o, places))

    return build


def _factors(o: Options, lr: Any) -> optax.GradientTransformation:
    """Adam with its rate, for methods that train factors."""
    return _around(o, lr, o.adam)


def _around(o: Options, lr: Any, direction: optax.GradientTransformation) -> optax.GradientTransformation:
    """Decay, if there is any, before or after a direction, and the rate.

    An array may be traced at the next step, where the state has the same structure.
    """
    none = not isinstance(o.weight_decay, jax.Array) and o.weight_decay == 0
    decay = [] if none else [_decay(o.weight_decay)]
    parts = [*decay, direction] if o.decay == "coupled" else [direction, *decay]
    return optax.chain(*parts, *([] if lr is None else [_rate(lr)]))


def _decay(weight: Any) -> optax.GradientTransformation:
    """The weights times a number added; updates keep their dtype."""

    def add(updates: PyTree, params: PyTree | None) -> PyTree:
        if params is None:
            raise UsageError("a step without the parameters is not allowed: their decay is part of it")
        return jax.tree.map(lambda u, w: (u + weight * w).astype(u.dtype), updates, params)

    return optax.stateless(add)


def _clip(most: Any) -> optax.GradientTransformation:
    """The gradient, scaled down to a norm if its own, in float32 at least, is larger."""

    def wide(g: Array) -> Any:
        return jnp.promote_types(g.dtype, jnp.float32)

    def clipped(gradient: PyTree, params: PyTree | None) -> PyTree:
        del params
        norm = tree_norm(jax.tree.map(lambda g: g.astype(wide(g)), gradient))
        scaled = jax.tree.map(lambda g: ((g / norm.astype(wide(g))) * most).astype(g.dtype), gradient)
        return jax.tree.map(lambda g, less: jax.lax.select(norm < most, g, less), gradient, scaled)

    return optax.stateless(clipped)


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


def _momentum(o: Options, nesterov: bool) -> optax.GradientTransformation:
    return momentum_direction(0.9 if o.momentum is None else o.momentum, nesterov=nesterov, stored=o.stored)


def _muon(o: Options, places: dict[str, Any]) -> optax.GradientTransformation:
    beta = 0.95 if o.momentum is None else o.momentum
    return muon_direction(o.own_adam, beta, o.orthogonal, rms=o.rms, dims=places["dims"])


def _galore(o: Options, places: dict[str, Any], **more: Any) -> optax.GradientTransformation:
    given = {"every": o.every, "scale": o.scale, "moments": o.moments}
    return galore(o.adam, more.pop("subspace", o.subspace), **{**given, **places, **more})


def _apollo(o: Options, places: dict[str, Any], rank: int, scale: float | Array, tensor: bool) -> optax.GradientTransformation:
    gaussian = Subspace(rank=rank, side=o.side, finder="gaussian")
    return apollo(o.adam, gaussian, every=o.every, scale=scale, tensor=tensor, **places)


def _relora(o: Options, lr: Any, places: dict[str, Any]) -> optax.GradientTransformation:
    require(o, o.every is not None, "ReLoRA needs a number of steps between merges", "every")
    assert o.every is not None
    return relora(_factors(o, lr), o.rank, every=o.every, alpha=o.alpha, **places)


def _random(o: Options) -> Subspace:
    return dataclasses.replace(o.subspace, finder="orthonormal")


METHODS: dict[str, Builder] = {
    "sgd": _uphill(lambda o, places: gradient_direction()),
    "momentum": _uphill(lambda o, places: _momentum(o, nesterov=False)),
    "nesterov": _uphill(lambda o, places: _momentum(o, nesterov=True)),
    "sign": _uphill(lambda o, places: sign_direction()),
    "adam": _uphill(lambda o, places: o.own_adam),
    "adamw": _uphill(lambda o, places: o.own_adam),
    "adam_8bit": _uphill(lambda o, places: o.own_adam, stored="8bit"),
    "muon": _uphill(_muon),
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


FACTORED = ("lora", "relora", "low_rank")
COUPLED = ("sgd", "momentum", "nesterov", "adam", "adam_8bit")  # whose decay is coupled by default


def method(
    name: str | Code,
    lr: float | Array | optax.Schedule | None,
    options: Options | None = None,
    *,
    dims: Dims = hidden_matrices,
    key: PRNGKeyArray | None = None,
) -> Method:
    """One of :data:`METHODS` at a rate, which may be traced or a schedule; parameters may be arrays or flax's variables.

    Args:
        name: the method, or a switch among several (a field ``optimizer: jd.Code = jd.code("sgd", "adam")``): one program for all,
            with the states of all. Under ``vmap`` over the switch each makes its update and one is used: for cheap ones.
        lr: learning rate of all leaves: a number that is at least 0, or a schedule (:func:`jaxdyn.optim.schedules.schedule`). None:
            updates are the direction and point uphill, for rates of one's own that come after it; not of methods with factors.
        options: what the methods share; each reads those that it has.
        dims: which leaves are matrices, and how.
        key: of random bases and of LoRA's factors.

    Raises:
        UsageError: for an unknown name, a rate that is neither, ReLoRA without a period, or AdamW with a coupled decay; when used,
            as the methods.
    """
    if isinstance(name, Code):
        return _switched(name, {each: method(each, lr, options, dims=dims, key=key) for each in name.names})
    if not isinstance(name, str) or name not in METHODS:
        raise UsageError(f"method={name} is not allowed: it is one of {', '.join(METHODS)}")
    if key is not None and not isinstance(key, jax.Array):
        raise UsageError(f"key={key!r:.60} is not allowed: it is a key of JAX, such as jax.random.key(0)")
    if lr is None and name in FACTORED:
        raise UsageError(f"lr=None is not allowed for {name}: its factors are trained at a rate")
    if lr is not None and not callable(lr):
        number("lr", lr, least=0, traced=True)
    o = _decaying(name, Options() if options is None else options)
    start = (lambda params: spectral_start(params, o.rank, dims)) if name == "low_rank" else _same
    tx = METHODS[name](o, lr, {"dims": dims, "key": jax.random.key(0) if key is None else key})
    return Method(start, on_arrays(tx if o.clip is None else optax.chain(_clip(o.clip), tx)))


def _decaying(name: str, o: Options) -> Options:
    """The options with the kind of decay that a method has by default."""
    require(o, name != "adamw" or o.decay != "coupled", "AdamW's decay is decoupled; that of adam may be coupled", "decay")
    return dataclasses.replace(o, decay=o.decay or ("coupled" if name in COUPLED else "decoupled"))


def _switched(choice: Code, methods: dict[str, Method]) -> Method:
    """One of several methods, by a traced switch."""
    starts = [one.start for one in methods.values()]
    same = all(start is _same for start in starts)
    start = _same if same else lambda params: jax.lax.switch(choice.index, starts, params)
    return Method(start, train.switched(choice, {name: one.tx for name, one in methods.items()}))


def _same(params: PyTree) -> PyTree:
    return params
