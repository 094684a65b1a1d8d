"""The judge of the waves."""

import jaxdyn as jd
from jaxdyn.theories.gromov import waves


def test_judge_holds_and_rejects_a_tenth(gromov_runs):
    assert all(c.passed for c in waves.judge(gromov_runs))
    for factor in (0.9, 1.12):
        assert not all(c.passed for c in waves.judge(jd.scaled(predicted_logits=factor)(gromov_runs)))
