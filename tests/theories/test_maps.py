"""Maps that theories ask for can be made: their axes, fields and seeds are those of their claims."""

import pytest

from jaxdyn.cli.map import parse
from jaxdyn.engine.catalogue import library
from jaxdyn.engine.verification.verdict_map import prepare_survey


@pytest.mark.thinned
@pytest.mark.parametrize("stored", library.maps(), ids=lambda stored: stored.name)
def test_a_map_can_be_planned(stored):
    survey = prepare_survey(stored.claim, parse(stored.over), cells=stored.cells, seeds=stored.seeds, overrides=stored.sets)
    assert 1 <= len(survey.first()) <= stored.cells
