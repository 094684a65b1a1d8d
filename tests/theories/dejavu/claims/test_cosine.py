"""The verdict of this topic, with all controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.dejavu.claims import cosine


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(cosine.CLAIMS), seeds=16)] == ["upheld"]
