"""Which runs a judge is asked about."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.judging.judged_runs import ok_runs, outside, select_form, why_not_judged
from tests.engine.handmade import data, failing


def test_runs_that_are_not_ok_are_nan_and_the_others_untouched():
    main = data(0.1, status=failing(3))
    usable = ok_runs(main)
    lost = np.isnan(usable.measured_z).all("entry")
    assert int(lost.sum()) == 3 and (lost == (main.status != 0)).all()
    assert usable.measured_z.where(~lost).equals(main.measured_z.where(~lost))
    whole = data()
    assert ok_runs(whole) is whole


def test_runs_outside_the_assumptions_are_left_out(claim):
    main = data().assign(assumed_overlap=data().status * 0 + np.array([[0.5], [1.5]]))
    judged = claim(assumes=jd.below("overlap", 1.0))
    assert int(outside(judged, main).sum()) == 4
    assert int(np.isnan(ok_runs(main, outside(judged, main)).measured_z).all("entry").sum()) == 4
    assert why_not_judged(judged, main) is None
    assert "no run lies inside the assumptions" in why_not_judged(claim(assumes=jd.below("overlap", 0.1)), main)


def test_too_few_runs_are_said(claim):
    assert "3 of 8 runs are not ok (diverged); 100% are needed" in why_not_judged(claim(), data(status=failing(3)))
    assert why_not_judged(claim(min_ok=0.5), data(status=failing(3))) is None
    assert why_not_judged(claim(min_ok=0.0), data(status=failing(8))) is not None


def test_a_form_is_chosen_by_name():
    forms = data(forms={"derived": 1.0, "printed": 2.0})
    assert "form" not in select_form(forms, "printed").dims
    assert float(select_form(forms, "printed").predicted_z.max()) == 4.0
    for form, sentence in ((None, "must name one"), ("other", "it predicts derived, printed")):
        with pytest.raises(jd.UsageError, match=sentence):
            select_form(forms, form)
    with pytest.raises(jd.UsageError, match="leave out form="):
        select_form(data(), "printed")
