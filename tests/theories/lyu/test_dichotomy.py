"""The judges of the switch and of the path, on small runs.

What the setting of the switch refuses.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.lyu import dichotomy
from jaxdyn.theories.lyu.dichotomy import Switch, trial


@pytest.mark.parametrize("fields", [{"active": 12}, {"samples": 24}])
def test_data_that_determine_the_weight_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: active < samples < inputs"):
        Switch(**fields)


@pytest.fixture(scope="module")
def small():
    grid = jd.grid(Switch, alpha=[4.0, 8.0, 16.0], decay=[0.01, 0.005], samples=10, inputs=16, active=1, records=48)
    return jd.sweep(trial, grid, seeds=8)


def rejects(judge, ds, name, factor):
    return not all(c.passed for c in judge(jd.scaled(**{f"predicted_{name}": factor})(ds)))


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_judges_hold_and_reject_a_tenth(small):
    for name, judge in (("switch", dichotomy.judge_switch), ("error", dichotomy.judge_path), ("product", dichotomy.judge_path)):
        assert all(c.passed for c in judge(small)), [c for c in judge(small) if not c.passed]
        assert rejects(judge, small, name, 0.9) and rejects(judge, small, name, 1.1)


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_switch_moves_with_the_start_at_slope_one(small):
    step = small.measured_switch.diff("alpha").values
    np.testing.assert_allclose(step, np.log(2), atol=0.01)


@pytest.mark.slow
def test_judges_say_when_data_are_too_few(small):
    with pytest.raises(jd.Inconclusive, match="at least 3 values of alpha"):
        dichotomy.judge_switch(small.isel(alpha=slice(2)))
    with pytest.raises(jd.Inconclusive, match="at least 2 values of decay"):
        dichotomy.judge_path(small.isel(decay=[0]))
