"""The verdict on MobileLLM's counts, with all controls and rivals."""

import jaxdyn as jd
from jaxdyn.theories.mobile.claims import counts


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(counts.CLAIMS))] == ["upheld"]
