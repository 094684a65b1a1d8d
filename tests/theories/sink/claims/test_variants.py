"""The claim on the forms of attention comes out, with all its controls and rivals, on a few runs."""

import jaxdyn as jd
from jaxdyn.theories.sink.claims import variants


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(variants.CLAIMS), seeds=4)] == ["upheld"]
