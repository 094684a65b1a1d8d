"""The verdicts of this topic, with all controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.stream.claims import lost


def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(lost.CLAIMS), seeds=3)] == ["upheld"] * 1
