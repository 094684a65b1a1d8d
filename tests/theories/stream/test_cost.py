"""Bytes of caches by hand."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.stream.cost import Cost, bytes_of


def test_by_hand():
    assert bytes_of(Cost(), "9 heads share 3, float32", 64) == 2 * 30 * 3 * 64 * 32 * 4
    assert bytes_of(Cost(kind="dense"), "8 heads share 2, bfloat16", 256) == 2 * 4 * 2 * 64 * 256 * 2


@pytest.mark.parametrize("wrong", [{"kind": "lru"}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Cost(**wrong)
