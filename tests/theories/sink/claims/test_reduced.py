"""The claims on the reduced flow come out, with all their controls and rivals, on a few runs."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.sink.claims import reduced


@pytest.mark.slow
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(reduced.CLAIMS), seeds=2)] == ["upheld", "refuted"]
