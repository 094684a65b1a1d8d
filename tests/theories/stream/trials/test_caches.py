"""Settings of streaming caches; the caches themselves are tested in tests/nn/cache."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.stream.trials.caches import Stream


@pytest.mark.parametrize("wrong", [{"sinks": 6.0}, {"sinks": -1.0}, {"size": 1}, {"size": 20}, {"layers": 3.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Stream(**wrong)
