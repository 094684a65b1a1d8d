"""All claims of calibration: complete, with controls, plots and grids."""

from jaxdyn.theories.cal import CLAIMS


def test_claims_are_complete():
    ids = [c.id for c in CLAIMS]
    assert len(ids) == len(set(ids)) == 18 and all(i.startswith("cal.") for i in ids)
    for claim in CLAIMS:
        assert claim.controls and claim.plot is not None and claim.seeds >= 8
        assert len(claim.quick.cells()) > 0 and len(claim.grid("paper").cells()) > 0
        assert {"kvaerno5", "dopri8", "tsit5"} == set(CLAIMS[ids.index("cal.riccati")].quick.axes["solver"])
