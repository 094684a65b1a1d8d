"""The verdicts of this topic, with all controls and rivals."""

import jaxdyn as jd
from jaxdyn.theories.sln.claims import spectrum


def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(spectrum.CLAIMS))] == [c.expected for c in spectrum.CLAIMS]
