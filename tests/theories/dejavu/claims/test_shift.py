"""The verdict of this topic, with all controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.dejavu.claims import shift


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(shift.CLAIMS), seeds=32)] == ["upheld"]
