"""The verdicts of this topic, with all controls and rivals, on a few runs."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.stream.claims import caches


@pytest.mark.slow
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(caches.CLAIMS), seeds=3)] == ["upheld"] * 3
