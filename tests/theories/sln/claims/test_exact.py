"""The verdicts of this topic, with all controls and rivals."""

import jaxdyn as jd
from jaxdyn.theories.sln.claims import exact


def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(exact.CLAIMS))] == [c.expected for c in exact.CLAIMS]
