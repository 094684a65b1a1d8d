"""Adaptive refinement: points on a dyadic lattice, denser where the labels of neighbours differ.

Labels of points come in, new points go out; claims are unknown here. A square whose corners have different labels is cut into four
(an interval into two); when no such square is left, the largest of the others are cut, to find islands.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

__all__ = ["FINE", "Leaf", "edges", "more", "start"]

FINE = 2**12  # steps along an axis: points have whole coordinates from 0 to this number
Point = tuple[int, ...]
MOST = {1: 16, 2: 8}  # largest number of intervals along an axis at the start, by number of axes
DEEPER = 3  # how many times within a round parts are cut further, before their labels are known


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A square (or an interval) that is not cut: its lowest corner and its side."""

    low: Point
    side: int

    @property
    def corners(self) -> list[Point]:
        """All corners, the lowest first."""
        return self._grid((0, self.side))

    @property
    def cut(self) -> list[Point]:
        """The points needed to cut it: all corners of its parts, including its own."""
        return self._grid((0, self.side // 2, self.side))

    @property
    def parts(self) -> list[Leaf]:
        """The parts of half the side."""
        return [Leaf(low, self.side // 2) for low in self._grid((0, self.side // 2))]

    def _grid(self, steps: Sequence[int]) -> list[Point]:
        return [
            tuple(a + b for a, b in zip(self.low, step, strict=True)) for step in itertools.product(steps, repeat=len(self.low))
        ]


def start(dims: int, cells: int) -> tuple[list[Leaf], list[Point]]:
    """Leaves and points of the first round: at most a third of all cells, but at least two intervals along each axis."""
    if dims == 0:
        return [], [()]
    count = MOST[dims]
    while count > 2 and 3 * (count + 1) ** dims > cells:
        count //= 2
    side = FINE // count
    leaves = [Leaf(low, side) for low in itertools.product(range(0, FINE, side), repeat=dims)]
    return leaves, list(dict.fromkeys(p for leaf in leaves for p in leaf.corners))


def more(
    leaves: Sequence[Leaf], labels: Mapping[Point, str], count: int, border: tuple[str, str]
) -> tuple[list[Leaf], list[Point]]:
    """Leaves and ``count`` new points of the next round, fewer if the lattice is exhausted.

    Leaves at the border are cut first, then others with several labels. Remaining points go to the parts of these leaves, before
    their labels are known, and then to leaves with a single label, where islands may be.

    Args:
        leaves: the current leaves.
        labels: labels of all points so far.
        count: number of points to judge next.
        border: a pair of labels; leaves with both are cut first.
    """
    current, requested = set(leaves), dict[Point, None]()

    def cut(leaf: Leaf) -> bool:
        new = [p for p in leaf.cut if p not in labels and p not in requested]
        room = count - len(requested)
        if leaf.side < 2 or room == 0:
            return False
        requested.update(dict.fromkeys(new[:room]))
        if len(new) > room:
            return False
        current.discard(leaf)
        current.update(leaf.parts)
        return True

    def cut_all(chosen: Sequence[Leaf]) -> list[Leaf]:
        ordered = sorted(chosen, key=lambda leaf: (-leaf.side, _scattered(leaf.low)))
        return [part for leaf in ordered if cut(leaf) for part in leaf.parts]

    # in order of priority, while points are left
    corner_labels = {leaf: {labels[p] for p in leaf.corners} for leaf in leaves}
    parts = cut_all([leaf for leaf in leaves if corner_labels[leaf] >= set(border)])
    parts += cut_all([leaf for leaf in leaves if len(corner_labels[leaf]) > 1 and not corner_labels[leaf] >= set(border)])
    for _ in range(DEEPER):
        parts = cut_all(parts)
    parts += cut_all([leaf for leaf in leaves if len(corner_labels[leaf]) == 1])
    while parts and len(requested) < count:
        parts = cut_all(parts)
    return sorted(current, key=lambda leaf: (leaf.low, leaf.side)), list(requested)


def _scattered(low: Point) -> int:
    """A sort key that scatters leaves over the map, so that no corner is refined first."""
    mixed = 0
    for x in low:
        mixed = (mixed * 31 + x) * 2654435761 % 2**32
    return mixed


def edges(leaves: Sequence[Leaf], labels: Mapping[Point, str], pair: tuple[str, str]) -> list[tuple[Point, Point]]:
    """Sides of leaves along which the border lies: their ends have these two labels, and no point lies between."""
    sides: dict[tuple[Point, Point], None] = {}
    for leaf in leaves:
        for axis, low in itertools.product(range(len(leaf.low)), leaf.corners):
            if low[axis] != leaf.low[axis]:
                continue
            middle, high = ((*low[:axis], low[axis] + step, *low[axis + 1 :]) for step in (leaf.side // 2, leaf.side))
            if {labels[low], labels[high]} == set(pair) and (leaf.side < 2 or middle not in labels):
                sides[low, high] = None
    return list(sides)
