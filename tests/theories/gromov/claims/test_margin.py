"""The judge of the margins."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.gromov.claims import margin


@pytest.mark.parametrize("name", ["mean", "variance"])
def test_judge_holds_and_rejects_a_tenth(gromov_runs, name):
    assert all(c.passed for c in margin.judge(gromov_runs))
    for factor in (0.9, 1.12):
        assert not all(c.passed for c in margin.judge(jd.scaled(**{f"predicted_{name}": factor})(gromov_runs)))
