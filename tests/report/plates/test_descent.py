"""These plates ask for maps that can be made."""

import pytest

from jaxdyn.report.plates.descent import PLATES
from tests.report.plates.planned import plan


@pytest.mark.parametrize("plate", PLATES, ids=lambda p: p.name)
def test_a_plate_can_be_planned(plate):
    assert 1 <= len(plan(plate).first()) <= plate.cells
