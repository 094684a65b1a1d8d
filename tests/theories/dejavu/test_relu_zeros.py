"""Settings that are refused."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.dejavu.relu_zeros import Pruned


@pytest.mark.parametrize("wrong", [{"kept": 65}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Pruned(**wrong)
