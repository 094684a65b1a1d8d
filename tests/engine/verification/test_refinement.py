"""Points on a dyadic lattice."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxdyn.engine.verification.refinement import FINE, Leaf, edges, more, start

BORDER = ("in", "out")


def ask(dims, cells, inside, rounds):
    """Leaves and labels after some rounds in which points inside are told from others."""
    leaves, points = start(dims, cells)
    labels = {}
    for _ in range(rounds):
        labels |= {p: "in" if inside([x / FINE for x in p]) else "out" for p in points}
        leaves, points = more(leaves, labels, (len(labels) if not points else len(points)), BORDER)
    labels |= {p: "in" if inside([x / FINE for x in p]) else "out" for p in points}
    return leaves, labels


@pytest.mark.parametrize(("dims", "cells", "first"), [(1, 243, 17), (2, 243, 81), (2, 100, 25), (2, 9, 9), (1, 3, 3), (0, 5, 1)])
def test_the_first_round_takes_a_third_of_the_cells_at_most_if_it_can(dims, cells, first):
    leaves, points = start(dims, cells)
    assert len(points) == len(set(points)) == first
    assert math.isclose(sum((leaf.side / FINE) ** dims for leaf in leaves), float(dims > 0))


@given(st.floats(0.05, 0.95), st.floats(-2, 2), st.integers(1, 4))
def test_leaves_cover_the_plane_once_and_all_their_corners_are_known(offset, slope, rounds):
    leaves, labels = ask(2, 75, lambda p: p[1] < offset + slope * (p[0] - 0.5), rounds)
    assert math.isclose(sum((leaf.side / FINE) ** 2 for leaf in leaves), 1.0)
    assert all(corner in labels for leaf in leaves for corner in leaf.corners)
    assert len(set(leaves)) == len(leaves)


def test_points_gather_at_the_border():
    _, labels = ask(2, 243, lambda p: p[0] ** 2 + p[1] ** 2 < 0.5, 4)
    distance = [abs(math.hypot(*p) / FINE - 0.5**0.5) for p in labels]
    near = sum(d < 0.05 for d in distance) / len(distance)
    grid = [abs(math.hypot(a / 64, b / 64) - 0.5**0.5) for a, b in itertools.product(range(65), repeat=2)]
    assert near > 3 * sum(d < 0.05 for d in grid) / len(grid)


def test_what_lies_between_the_two_labels_of_the_border_is_cut_first():
    leaves, points = start(1, 9)
    labels = {p: "other" if p[0] < 2048 else "in" if p[0] < 3072 else "out" for p in points}
    _, new = more(leaves, labels, 1, BORDER)
    assert points == [(0,), (2048,), (4096,)] and new == [(3072,)]


def test_islands_are_looked_for_when_nothing_is_mixed():
    leaves, points = start(2, 27)
    labels = dict.fromkeys(points, "in")
    cut, new = more(leaves, labels, 5, BORDER)
    assert len(new) == 5 and len(cut) == len(leaves) + 3, "one square into four"
    assert all(p not in labels for p in new)


@given(st.sampled_from([1, 2]), st.integers(9, 300), st.integers(1, 40))
def test_a_round_asks_for_as_many_points_as_it_may(dims, cells, count):
    leaves, points = start(dims, cells)
    _, new = more(leaves, dict.fromkeys(points, "in"), count, BORDER)
    assert len(new) == len(set(new)) == count


def test_a_lattice_that_is_used_up_asks_nothing_more():
    leaf = Leaf((0,), 1)
    assert more([leaf], {(0,): "in", (1,): "out"}, 8, BORDER) == ([leaf], [])


def test_edges_lie_across_the_border_and_have_no_point_between():
    leaves, labels = ask(2, 243, lambda p: p[0] + p[1] < 0.9, 3)
    found = edges(leaves, labels, BORDER)
    assert found and all({labels[a], labels[b]} == set(BORDER) for a, b in found)
    for a, b in found:
        assert tuple((x + y) // 2 for x, y in zip(a, b, strict=True)) not in labels
        assert min(sum(a), sum(b)) / FINE < 0.9 <= max(sum(a), sum(b)) / FINE
