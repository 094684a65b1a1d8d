"""The claims on GaLore's theory are complete, and under the contract (those on a text: test_text)."""

import pytest

from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.contract import MECHANISM
from jaxdyn.theories.galore.text import claims

CLAIMS = all_claims(theories={"galore"}).values()
BY_ID = {c.id: c for c in CLAIMS if c not in claims.CLAIMS}


@pytest.mark.parametrize("name", BY_ID)
def test_claims_are_complete(name):
    claim = BY_ID[name]
    assert len(BY_ID) + len(claims.CLAIMS) == len(CLAIMS) and name.startswith("galore.")
    assert claim.evidence and claim.plot and claim.caption
    assert claim.recorded if claim.expected == "measured" else claim.bounds
    assert claim.expected == "refuted" or (claim.controls and claim.rivals)
    trained = claim.evidence in MECHANISM and claim.evidence != "model"
    assert not trained or "moves" in next(iter(claim.rivals)) or "weights" in next(iter(claim.rivals))
    assert claim.seeds >= 100 or claim.evidence in ("numbers", "model")
    assert claim.expected != "refuted" or (name.endswith("_as_printed") and claim.printed)
    if claim.evidence == "reduced":
        assert claim.statement.startswith("In the reduced dynamics")
