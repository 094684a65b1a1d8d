"""The judge of the delay on data that follow the law."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.omnigrok.delay import judge


def passed(ds):
    return all(c.passed for c in judge(ds))


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(lawful)
    for factor in (0.7, 1.5):
        assert not passed(jd.scaled(predicted_delay=factor)(lawful))
    no_power = lawful.assign(measured_delay=lawful.measured_delay * lawful.decay / 0.25)
    assert not passed(no_power), "a delay that the decay does not set"
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        judge(lawful.isel(seed=slice(4)))
