import pytest
from jaxdyn.engine.contract import MECHANISM
from jaxdyn.engine.registry import all_claims
MINE=("b_law","b_flow","frozen","memory","thm2","thm3","overlap")
import importlib
CLAIMS={c.id:c for m in MINE for c in importlib.import_module(f"jaxdyn.theories.snap.claims.{m}").CLAIMS}
@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_c(name):
    claim=CLAIMS[name]
    assert claim.evidence is not None
    assert claim.rivals is not None
    assert not isinstance(claim.bounds, str) or claim.bounds in ("paper", "derived")
    assert claim.bounds is not None or claim.expected != "upheld"
    if claim.evidence in MECHANISM and claim.expected == "upheld":
        assert claim.rivals
    if claim.expected=="refuted":
        assert name.endswith(("_as_printed", "_naive", "_beyond"))
        assert not name.endswith("_as_printed") or claim.printed
    if claim.expected=="measured":
        assert claim.found and claim.bounds is None
    if claim.expected=="upheld": assert claim.controls
