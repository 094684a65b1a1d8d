"""Where to ask next: points on a dyadic lattice, denser where neighbours differ.

Knows no claim: labels of points come in, new points go out. A square whose corners do not all have one label is cut into four (an
interval into two); when no such square is left, the largest of the others are cut, so that islands are found.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

__all__ = ["FINE", "Leaf", "edges", "more", "start"]

FINE = 2**12  # steps along an axis: points are whole numbers from 0 to this
Point = tuple[int, ...]
MOST = {1: 16, 2: 8}  # intervals along an axis at the start
DEEPER = 3  # how many times parts are cut on trial within a round


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A square (an interval) that is not cut: its lowest corner and its side."""

    low: Point
    side: int

    @property
    def corners(self) -> list[Point]:
        """All corners, the lowest first."""
        return self._grid((0, self.side))

    @property
    def cut(self) -> list[Point]:
        """The points that cutting needs: corners of the parts, its own corners included."""
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
    """Leaves and points of the first round: at most a third of all cells, and at least two intervals along each axis."""
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
    """Leaves and ``count`` new points of the next round, fewer when the lattice is used up.

    First leaves at the border are cut, then others with several labels; what room is left goes to their parts, on trial, and then
    to leaves of one label, where islands may be.

    Args:
        leaves: as they are.
        labels: of all points so far.
        count: number of points to judge next.
        border: two labels: what lies between them is cut first.
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
    """A fixed order that does not fill one corner of the map first."""
    mixed = 0
    for x in low:
        mixed = (mixed * 31 + x) * 2654435761 % 2**32
    return mixed


def edges(leaves: Sequence[Leaf], labels: Mapping[Point, str], pair: tuple[str, str]) -> list[tuple[Point, Point]]:
    """Sides of leaves whose ends have these two labels, without a point between: there lies the border."""
    sides: dict[tuple[Point, Point], None] = {}
    for leaf in leaves:
        for axis, low in itertools.product(range(len(leaf.low)), leaf.corners):
            if low[axis] != leaf.low[axis]:
                continue
            middle, high = ((*low[:axis], low[axis] + step, *low[axis + 1 :]) for step in (leaf.side // 2, leaf.side))
            if {labels[low], labels[high]} == set(pair) and (leaf.side < 2 or middle not in labels):
                sides[low, high] = None
    return list(sides)
