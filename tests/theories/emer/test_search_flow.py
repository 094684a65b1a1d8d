"""What is left of a matrix outside of the structure, and settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.emer.search_flow import SearchFlow, off_structure


def test_what_is_left_of_a_matrix(x64):
    w = np.full((4, 4), 0.5) + 2.0 * np.eye(4)
    mu, nu, rest = off_structure(w)
    np.testing.assert_allclose((mu, nu, rest), (2.5, 0.5, 0), atol=1e-15)
    assert float(off_structure(w + np.diag([1.0, -1, 0, 0]))[2]) == pytest.approx((2 / 16) ** 0.5)


@pytest.mark.parametrize("wrong", [{"vertices": 8}, {"inside": 4.0}, {"gap": 3.0}, {"renaming": 0.5}])
def test_refused_settings(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        SearchFlow(**wrong)
