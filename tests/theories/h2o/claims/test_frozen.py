"""The verdicts of this topic, with all controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.h2o.claims import frozen


def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(frozen.CLAIMS), seeds=256)] == ["upheld"] * 1
