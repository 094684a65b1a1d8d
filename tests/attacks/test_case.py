"""Cases: which runs the judge gets, and how it reacts."""

import numpy as np

import jaxdyn as jd
from tests.attacks import toys


def test_reactions():
    case = toys.case()
    assert case.reaction(case.main) == "passes"
    assert case.reaction(case.main.assign(measured_path=2 * case.main.measured_path)) == "fails"
    assert case.reaction(case.main.assign(measured_path=np.nan * case.main.measured_path)) == "undecided"
    assert case.reaction(case.main.drop_vars("measured_path")) == "raises"


def reads(ds):
    return [jd.mean_reading("end", ds.measured_path.isel(time=-1).mean("lr"), over="seed")]


def test_readings_react_when_they_leave_their_record():
    one = toys.case(expected="measured", judge=reads, bounds=None, controls={}, rivals={})
    assert one.measured and one.reaction(one.main) == "passes"
    assert one.reaction(one.main.assign(measured_path=100 * one.main.measured_path)) == "fails"
    assert set(one.own) == {"end"}
