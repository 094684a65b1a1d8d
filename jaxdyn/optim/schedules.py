r"""The rate as a function of the step, by name; its numbers may be traced, so that one program serves a sweep over them.

At step s = 0, 1, … of T, with w of them for the warm-up, the rate is the peak times

================  ==================================================================================
name              after the warm-up, in which it is s / w
================  ==================================================================================
``constant``      1
``linear``        from 1 down to ``end`` at step T
``cosine``        ``end`` + (1 - ``end``) (1 + cos(π (s - w) / (T - w))) / 2
``inverse_sqrt``  (w / s)\ :sup:`1/2`; without a warm-up w is 1
``step``          ``factor`` to the power of the whole periods ``every`` since the warm-up
``wsd``           1, and from step T - ``cooldown`` on linear to ``end`` (warm-up, stable, decay)
================  ==================================================================================

A step's count is that of the optimizer's updates: with a warm-up the first update has rate 0, as in optax. Beyond T the last
value stays. Source: ``optax.schedules`` for the first three and the warm-up, with the same bits; arXiv:1706.03762, section 5.3
(``inverse_sqrt``); arXiv:2404.06395, section 4 (``wsd``; its decay is linear here).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array

from jaxdyn.errors import UsageError, is_traced, number, whole

__all__ = ["SCHEDULES", "schedule"]

MOST = 2**31 - 1  # steps are counted in 32 bits
SCHEDULES = {  # name -> the arguments that it has besides the peak and the warm-up; those without a default are needed
    "constant": {},
    "linear": {"steps": None, "end": 0.0},
    "cosine": {"steps": None, "end": 0.0},
    "inverse_sqrt": {},
    "step": {"every": None, "factor": 0.1},
    "wsd": {"steps": None, "end": 0.0, "cooldown": None},
}


def schedule(
    kind: str,
    peak: float | Array,
    steps: int | Array | None = None,
    *,
    warmup: int | Array = 0,
    end: float | Array | None = None,
    every: int | Array | None = None,
    factor: float | Array | None = None,
    cooldown: int | Array | None = None,
) -> optax.Schedule:
    """A learning rate for :func:`jaxdyn.optim.methods.method` or any optimizer of optax: ``rate(count)``.

    Args:
        kind: one of :data:`SCHEDULES`.
        peak: the rate after the warm-up.
        steps: T; needed by linear, cosine and wsd, and no other has an end.
        warmup: w, fewer than T.
        end: the last rate over the peak, 0 by default.
        every: steps of a period of ``step``.
        factor: of its rate from one period to the next, 0.1 by default.
        cooldown: steps of the last part of ``wsd``.

    Raises:
        UsageError: for an unknown name, a number outside its range, one that is lacking, or one that the schedule does not have.
    """
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise UsageError(f"schedule={kind!r} is not allowed: it is one of {', '.join(SCHEDULES)}")
    number("peak", peak, least=0, traced=True)
    given = {"steps": steps, "end": end, "every": every, "factor": factor, "cooldown": cooldown}
    numbers = _numbers(kind, given)
    last = numbers["steps"] - 1 if isinstance(numbers.get("steps"), int) else MOST
    warm = whole("warmup", warmup, least=0, most=last, traced=True)
    if isinstance(warm, int) and isinstance(numbers.get("cooldown"), int):
        whole("cooldown", numbers["cooldown"], least=1, most=last + 1 - warm)
    shape = SHAPES[kind](warm, **numbers)

    def rate(count: Any) -> Any:
        return peak * (shape(count) if _zero(warm) else jnp.where(count < warm, _rise(warm, count), shape(count)))

    return rate


def _numbers(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """The checked numbers of a schedule."""
    has = SCHEDULES[kind]
    if strange := [name for name, value in given.items() if value is not None and name not in has]:
        owners = ", ".join(other for other, names in SCHEDULES.items() if strange[0] in names)
        raise UsageError(f"{strange[0]} is not allowed for the schedule {kind}: it belongs to {owners}")
    numbers = {name: default if given[name] is None else given[name] for name, default in has.items()}
    for name, value in numbers.items():
        if value is None:
            raise UsageError(f"{name}=None is not allowed: the schedule {kind} needs it")
        if name in ("end", "factor"):
            numbers[name] = number(name, value, least=0, most=1 if name == "factor" else math.inf, traced=True)
        else:
            numbers[name] = whole(name, value, least=1, most=MOST, traced=True)
    return numbers


def _zero(warm: Any) -> bool:
    return not is_traced(warm) and warm == 0


def _rise(warm: Any, count: Any) -> Any:
    """The warm-up: one less what is lacking."""
    return 1 - (1 - jnp.minimum(count, warm) / _positive(warm))


def _positive(steps: Any) -> Any:
    """A number of steps by which one divides."""
    return steps if isinstance(steps, int) else jnp.maximum(steps, 1)


def _done(count: Any, first: Any, length: Any) -> Any:
    """How much of ``length`` steps from the first on is done, between 0 and 1."""
    return jnp.clip(count - first, 0, length) / length


def _constant(warm: Any) -> optax.Schedule:
    return lambda count: 1.0


def _linear(warm: Any, steps: Any, end: Any) -> optax.Schedule:
    length = _positive(steps - warm)
    return lambda count: (1 - end) * (1 - _done(count, warm, length)) + end


def _cosine(warm: Any, steps: Any, end: Any) -> optax.Schedule:
    length = _positive(steps - warm)

    def shape(count: Any) -> Any:
        since = jnp.minimum(jnp.maximum(count - warm, 0), length)
        return (1 - end) * (0.5 * (1 + jnp.cos(jnp.pi * since / length))) + end

    return shape


def _inverse_sqrt(warm: Any) -> optax.Schedule:
    first = max(warm, 1) if isinstance(warm, int) else jnp.maximum(warm, 1)
    return lambda count: jnp.sqrt(first / jnp.maximum(count, first))


def _step(warm: Any, every: Any, factor: Any) -> optax.Schedule:
    return lambda count: jnp.power(factor, jnp.maximum(count - warm, 0) // _positive(every))


def _wsd(warm: Any, steps: Any, end: Any, cooldown: Any) -> optax.Schedule:
    length = _positive(cooldown)
    return lambda count: 1 - (1 - end) * _done(count, steps - length, length)


SHAPES: dict[str, Callable[..., optax.Schedule]] = {
    "constant": _constant,
    "linear": _linear,
    "cosine": _cosine,
    "inverse_sqrt": _inverse_sqrt,
    "step": _step,
    "wsd": _wsd,
}
