"""What must hold for every claim of every theory, at both scales, before anything is run."""

import jax
import pytest

from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.resource import absence
from jaxdyn.engine.judging.agreement import too_few_to_agree
from jaxdyn.engine.runs.sweep import Request, plan

CLAIMS = registry.all_claims()
KINDS = {"upheld": 1, "refuted": 0, "measured": 0}  # least number of negative controls


@pytest.mark.thinned
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_is_complete_and_its_grids_can_be_built(claim):
    assert too_few_to_agree(max(claim.seeds, claim.max_seeds or 0), claim.recorded_seeds or 1) is None
    assert len(claim.controls) >= KINDS[claim.expected]
    assert claim.plot is not None and claim.source and claim.statement
    assert (claim.counterpart is not None) == (claim.expected == "refuted")
    for grid in (claim.quick, claim.paper or claim.quick):
        assert len(grid.cells()) > 0
        for control in claim.controls.values():  # settings that a control asks for are allowed at both scales
            assert callable(control.breach) or len(grid.replace(**control.breach).cells()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_every_program_of_the_paper_scale_can_be_traced(claim):

    grid = claim.paper or claim.quick
    if (why := absence(claim.trial, [grid])) is not None:
        pytest.skip(why)
    for job in plan([Request(claim.trial, grid, (0,))], store=None):
        assert job.program.fingerprint
    jax.clear_caches()
