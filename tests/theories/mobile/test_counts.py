"""The verdict on MobileLLM's counts, with all controls and rivals.

Counts of the smallest model by hand.
"""

import jaxdyn as jd
from jaxdyn.theories.mobile import counts
from jaxdyn.theories.mobile.counts import formula
from jaxdyn.theories.mobile.published import MODELS


def test_the_smallest_model():
    assert formula(MODELS["125M"]) == (124_635_456, 143_067_456, 2 * 30 * 192 * 2048 * 2)


def test_verdict():
    assert [r.verdict for r in jd.verify_many(list(counts.CLAIMS))] == ["upheld"]
