"""The judge of published figures."""

import jaxdyn as jd
from jaxdyn.theories.scal.claims import published
from jaxdyn.theories.scal.trials.published import Published, trial
from tests.theories.galore.helpers import passed


def test_rounding():
    ds = jd.sweep(trial, jd.grid(Published), 1)
    assert passed(published.judge(ds)) == [True, True, True, True]
    assert passed(published.judge(published.same(ds))) == [True, False, False, True]
    assert passed(published.judge(published.wide(ds))) == [True, True, True, False]
    assert passed(published.judge(published.exchanged(ds)))[0] is False
