"""The best set of codes, and settings that are refused."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.assort.capacity import Capacity, largest


def test_the_best_set_is_that_of_the_largest():
    np.testing.assert_allclose(largest(np.float32([0.2, 0.5, 0.3])), [0.5, 0.8, 1.0], rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"vocabulary": 2}, {"distinct": 40.0}, {"codes": 40}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Capacity(**wrong)
