"""The judges of accuracy and width."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.gromov import analytic_accuracy


def test_width_is_interpolated_and_missing_where_the_goal_is_not_reached():
    rows = xr.DataArray([[0.5, 1.0], [0.5, 0.6]], dims=("modulus", "nodes"))
    found = analytic_accuracy.width([16, 32], rows, 0.75).values
    assert found[0] == pytest.approx(24) and np.isnan(found[1])


@pytest.mark.parametrize("judge", [analytic_accuracy.judge_accuracy, analytic_accuracy.judge_width])
def test_judges_hold_and_reject_a_tenth(gromov_runs, judge):
    assert all(c.passed for c in judge(gromov_runs))
    for factor in (0.9, 1.12):
        assert not all(c.passed for c in judge(jd.scaled(predicted_accuracy=factor)(gromov_runs)))


def test_judges_say_when_data_are_too_few(gromov_runs):
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        analytic_accuracy.judge_accuracy(gromov_runs.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of modulus"):
        analytic_accuracy.judge_width(gromov_runs.isel(modulus=slice(2)))
