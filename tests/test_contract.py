"""What the engine cannot ask of a claim that is new: the open ones of the package have their findings recorded."""

import pytest

from jaxdyn.engine.catalogue.registry import all_claims

MEASURED = {name: claim for name, claim in all_claims().items() if claim.expected == "measured"}


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_what_is_measured_is_recorded(name):
    assert MEASURED[name].recorded
    assert MEASURED[name].bounds is None, "what was recorded decides, not the marks"
