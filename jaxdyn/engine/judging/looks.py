r"""Looks: a claim may be judged again after seeds were added; all its looks together spend at most the allowed error.

A judgement on :math:`n` seeds of a claim that began with :math:`n_1` is look :math:`k = 1 + \lceil \log_2(n / n_1) \rceil` and
spends :math:`2^{-k}` of the error that the claim's intervals are allowed (Bonferroni over looks).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from jaxdyn.engine.judging.estimate import Estimated

if TYPE_CHECKING:
    import xarray as xr

    from jaxdyn.engine.claims.claim import Judge

__all__ = ["Look", "look", "spent"]


def look(seeds: int, first: int) -> int:
    """Number of the look of a judgement on ``seeds`` seeds, for a claim that began with ``first``; 1 up to that number."""
    return 1 + max(0, math.ceil(math.log2(seeds / first)))


def spent(number: int) -> float:
    r"""Share of the allowed error that a look spends, :math:`2^{-k}`."""
    return 2.0**-number


@dataclasses.dataclass(frozen=True)
class Look:
    """A judge whose intervals spend a share of the allowed error."""

    judge: Judge
    share: float

    def __call__(self, ds: xr.Dataset) -> Any:
        """The judge's answers at the level of this look; anything but a list is returned as it is, for the caller to refuse."""
        answers: Any = self.judge(ds)
        if not isinstance(answers, list | tuple):
            return answers
        return [answer.at(self.share) if isinstance(answer, Estimated) else answer for answer in answers]
