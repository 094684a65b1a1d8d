"""The paper's setting is that of the paper grids."""

import pytest

from jaxdyn.theories.prieto import CLAIMS, published

STEPS = {"prieto.orthogonal": "orthogonal", "prieto.stablemax": "stablemax"}


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.evidence == "network"], ids=lambda c: c.id)
def test_paper_grids_have_the_papers_sizes(claim):
    base = claim.paper.base
    assert (base.modulus, base.nodes, base.share) == (published.MODULUS, published.NODES, published.SHARE)
    assert base.steps == published.STEPS[STEPS.get(claim.id, "collapse")]
    assert base.lr == (published.RATE if claim.id in STEPS else published.COLLAPSE_RATE)
