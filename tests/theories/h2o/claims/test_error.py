"""The verdicts of this topic, with all controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.h2o.claims import error


def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(error.CLAIMS), seeds=8)] == ["upheld"] * 1
