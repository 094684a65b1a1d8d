"""The claims on growth come out as expected on a few runs, with all their controls and rivals."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.emer import log_growth


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(log_growth.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in log_growth.CLAIMS}
