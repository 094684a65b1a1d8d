"""Counts of the smallest model by hand."""

from jaxdyn.theories.mobile.counts import formula
from jaxdyn.theories.mobile.published import MODELS


def test_the_smallest_model():
    assert formula(MODELS["125M"]) == (124_635_456, 143_067_456, 2 * 30 * 192 * 2048 * 2)
