"""A plate is data: frozen, with the claim's own seeds unless it says otherwise."""

import dataclasses

import pytest

from jaxdyn.report.plates import PLATES, Plate, attention, descent, grokking, search


def test_a_plate_cannot_be_changed():
    plate = Plate("toy", "A toy", "toy.law", ("rate=.1:10:log",), "It holds.")
    assert (plate.cells, plate.seeds, dict(plate.sets)) == (243, None, {})
    with pytest.raises(dataclasses.FrozenInstanceError):
        plate.cells = 9


def test_all_groups_are_in_the_atlas():
    groups = (attention.PLATES, descent.PLATES, search.PLATES, grokking.PLATES)
    assert all(groups) and PLATES == sum(groups, ())
