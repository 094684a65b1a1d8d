"""Settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.emer.direction import Reply


@pytest.mark.parametrize("wrong", [{"vertices": 9}, {"inside": 6.0}, {"lr": 7.0}])
def test_refused_settings(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        Reply(**wrong)
