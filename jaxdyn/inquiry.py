r"""What is known while a judge is asked: which look this is, whose data these are, and which axes are those of settings.

The engine sets it around every call of a judge; statistics and checks read it. Outside of a verification nothing is set: intervals
have the level that they are asked for.

Looks: a claim may be judged again after seeds were added. The k-th look at it, with :math:`n` seeds where it began with
:math:`n_1`, has :math:`k = 1 + \lceil \log_2(n / n_1) \rceil` and spends :math:`2^{-k}` of the error that its intervals are
allowed, so that all looks together spend no more than the whole (Bonferroni over looks).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["Inquiry", "asking", "current", "look", "spent"]


@dataclasses.dataclass(frozen=True)
class Inquiry:
    """One question to a judge.

    Args:
        share: of the error that intervals are allowed; 1 where nothing is decided in looks.
        opponent: whether the data are a control's or a rival's.
        cells: the axes of settings, along which runs share their seeds.
    """

    share: float = 1.0
    opponent: bool = False
    cells: frozenset[str] = frozenset()


_NONE = Inquiry()
_current: ContextVar[Inquiry] = ContextVar("inquiry", default=_NONE)


def current() -> Inquiry:
    """The question that is being asked."""
    return _current.get()


@contextlib.contextmanager
def asking(**changes: object) -> Iterator[None]:
    """The same question with other fields, inside the block."""
    token = _current.set(dataclasses.replace(_current.get(), **changes))  # type: ignore[arg-type]
    try:
        yield
    finally:
        _current.reset(token)


def look(seeds: int, first: int) -> int:
    """Which look a judgement on this number of seeds is, for a claim that begins with ``first``."""
    return 1 + max(0, math.ceil(math.log2(seeds / first)))


def spent(number: int) -> float:
    r"""Share of the allowed error that a look spends, :math:`2^{-k}`."""
    return 2.0**-number
