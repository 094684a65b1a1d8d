"""Selection of claims that fit into a limited time: README's, every theory and every headline first, then the cheapest."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Candidate", "affordable"]


class Candidate(NamedTuple):
    """A claim that may be selected: its theory, its programs, whether it is a headline of the theory, and whether README's."""

    theory: str
    programs: frozenset[Hashable]
    headline: bool
    flagship: bool = False


def affordable(
    candidates: Sequence[Candidate],
    cost: Mapping[Hashable, float],
    each: Sequence[float],
    budget: float,
    longest: float = math.inf,
    at_least_one: bool = True,
) -> list[int]:
    """Indices of the chosen candidates, in the order of choice.

    First README's; then one claim of each theory, a headline if the theory has one; then the other headlines; then all others.
    Within each stage the cheapest comes next. A program of a chosen claim adds no cost again. A claim that does not fit is left
    out.

    Args:
        candidates: the claims.
        cost: seconds of each program.
        each: seconds of each claim in addition to those of its programs.
        budget: total seconds.
        longest: seconds that one program may take, since it is not divided among workers.
        at_least_one: whether the very first is chosen even if it does not fit, so that something is always run.
    """
    # ranks: the stage at which a candidate is chosen, then its price
    chosen: list[int] = []
    left, paid, spent = set(range(len(candidates))), set[Hashable](), 0.0
    led, begun = {c.theory for c in candidates if c.headline}, set[str]()

    def rank(i: int) -> tuple[int, float, int]:
        theory, programs, headline, flagship = candidates[i]
        first = theory not in begun and (headline or theory not in led)
        return -1 if flagship else 0 if first else 1 if headline else 2, each[i] + sum(cost.get(p, 0.0) for p in programs - paid), i

    # choose the best; then update the ranks of claims of its theory or with its programs
    ranks = {i: rank(i) for i in left}
    while left:
        _, price, best = min(map(ranks.__getitem__, left))
        left.discard(best)
        fits = spent + price <= budget and all(cost.get(p, 0.0) <= longest for p in candidates[best].programs - paid)
        if fits or (at_least_one and not chosen):
            spent += price
            chosen.append(best)
            theory, programs, *_ = candidates[best]
            changed = [i for i in left if candidates[i].theory == theory or not programs.isdisjoint(candidates[i].programs)]
            paid |= programs
            begun.add(theory)
            ranks |= {i: rank(i) for i in changed}
    return chosen
