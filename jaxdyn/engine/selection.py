"""Which claims a limited time is enough for: every theory and every headline first, then whatever costs least."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Candidate", "within"]


class Candidate(NamedTuple):
    """A claim that may be chosen: its theory, the programs that it needs, and whether it is a headline of its theory."""

    theory: str
    programs: frozenset[Hashable]
    headline: bool


def within(candidates: Sequence[Candidate], cost: Mapping[Hashable, float], each: Sequence[float], budget: float) -> list[int]:
    """The numbers of the chosen candidates, in the order in which they were chosen.

    First one claim of each theory, a headline where it has any; then the other headlines; then all others; every time the
    cheapest. A program that was chosen already costs nothing more. What does not fit is left out, but for the first claim of all:
    something is always run.

    Args:
        candidates: the claims.
        cost: seconds of each program.
        each: seconds of each claim besides its programs.
        budget: seconds for all.
    """
    chosen: list[int] = []
    left, paid, spent = set(range(len(candidates))), set[Hashable](), 0.0
    led, begun = {c.theory for c in candidates if c.headline}, set[str]()

    def rank(i: int) -> tuple[int, float, int]:
        theory, programs, headline = candidates[i]
        first = theory not in begun and (headline or theory not in led)
        return 0 if first else 1 if headline else 2, each[i] + sum(cost.get(p, 0.0) for p in programs - paid), i

    ranks = {i: rank(i) for i in left}
    while left:
        _, price, best = min(map(ranks.__getitem__, left))
        left.discard(best)
        if spent + price <= budget or not chosen:
            spent += price
            chosen.append(best)
            theory, programs, _ = candidates[best]
            changed = [i for i in left if candidates[i].theory == theory or not programs.isdisjoint(candidates[i].programs)]
            paid |= programs
            begun.add(theory)
            ranks |= {i: rank(i) for i in changed}
    return chosen
