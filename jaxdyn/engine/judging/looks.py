r"""Looks: a claim may be judged again after seeds were added, and all looks together spend no more error than one would.

The k-th look at a claim, with :math:`n` seeds where it began with :math:`n_1`, has :math:`k = 1 + \lceil \log_2(n / n_1) \rceil`
and spends :math:`2^{-k}` of the error that its intervals are allowed (Bonferroni over looks).
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
    """Which look a judgement on this number of seeds is, for a claim that begins with ``first``."""
    return 1 + max(0, math.ceil(math.log2(seeds / first)))


def spent(number: int) -> float:
    r"""Share of the allowed error that a look spends, :math:`2^{-k}`."""
    return 2.0**-number


@dataclasses.dataclass(frozen=True)
class Look:
    """A judge whose intervals have a share of the error that they are allowed."""

    judge: Judge
    share: float

    def __call__(self, ds: xr.Dataset) -> Any:
        """The judge's answers; whatever is no list of them is left to the caller, who says so."""
        answers: Any = self.judge(ds)
        if not isinstance(answers, list | tuple):
            return answers
        return [answer.at(self.share) if isinstance(answer, Estimated) else answer for answer in answers]
