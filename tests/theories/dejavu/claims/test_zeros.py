"""The verdict of this topic, with all controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.dejavu.claims import zeros


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(zeros.CLAIMS), seeds=16)] == ["upheld"]
