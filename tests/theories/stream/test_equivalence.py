"""Settings of streaming caches; the caches themselves are tested in tests/nn/cache."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.stream.equivalence import Stream


@pytest.mark.parametrize("wrong", [{"sinks": 6.0}, {"layers": 3.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Stream(**wrong)
