"""The judge of the shell on data that follow the law."""

import jaxdyn as jd
from jaxdyn.theories.omnigrok.shell import judge


def passed(ds):
    return all(c.passed for c in judge(ds))


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(lawful)
    for factor in (0.8, 1.25):
        assert not passed(jd.scaled(predicted_edge=factor)(lawful))
    assert not passed(jd.swap(sphere_test=0.02)(lawful))
