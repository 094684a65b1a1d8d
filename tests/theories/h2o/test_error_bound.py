"""Settings that are refused."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.h2o.error_bound import Eviction


@pytest.mark.parametrize("wrong", [{"kept": 24.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Eviction(**wrong)
