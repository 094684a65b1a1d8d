"""Plates ask for maps that can be made."""

import pytest

from jaxdyn.cli.atlas import parse
from jaxdyn.engine.atlas import prepare
from jaxdyn.report.plates import PLATES


@pytest.mark.parametrize("plate", PLATES, ids=lambda p: p.name)
def test_a_plate_can_be_planned(plate):
    asked = prepare(plate.claim, parse(plate.over), cells=plate.cells, seeds=plate.seeds, overrides=plate.sets)
    assert 1 <= len(asked.first()) <= plate.cells
