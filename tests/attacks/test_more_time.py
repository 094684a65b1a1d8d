"""More time: what holds at one time of training only is found, unless the statement names the time."""

import pytest

import jaxdyn as jd
from jaxdyn.attacks import more_time
from tests.attacks import trained


def judge_early(ds):
    """Much of the distance is left."""
    return [jd.at_least("share left", ds.measured_distance.isel(record=-1) / ds.measured_distance.isel(record=0), 0.005)]


EARLY = {
    "judge": judge_early,
    "rivals": {"it arrives": jd.off({"share left": 0.0})},
    "controls": {"a steeper slope": {"curvature": 9.0}},
}


def test_a_right_law_stands():
    answer = more_time.ask(trained.case())
    assert answer.outcome == "noticed" and list(answer.facts["asked"]) == [
        "twice the time (steps = 80)",
        "eight times the time (steps = 320)",
    ]


def test_what_holds_for_a_while_is_found():
    answer = more_time.ask(trained.case(**EARLY))
    assert [f.subject for f in answer.findings] == ["time"] and "steps = 80" in answer.findings[0].text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("After 40 steps more than .5% of the distance is left.", True),
        ("More than .5% of the distance is left at $t = 4$.", True),
        ("More than .5% is left until the loss is fitted.", True),
        ("From $t = 3$ on more is left.", True),
        ("Of the 40 that are made, more than .5% is left.", True),
        ("At the end of training more than .5% is left.", False),
        ("Within the same number of steps more is left, late in training.", False),
    ],
)
def test_a_statement_may_name_the_time(words, named):
    assert more_time.names_time(trained.claim(statement=words)) is named


def test_a_claim_that_names_the_time_is_about_it():
    case = trained.unrun(**EARLY, statement="After 40 steps some is left.")
    assert more_time.ask(case).outcome == "not applicable" and more_time.seconds(case) == 0


def judge_read(ds):
    """The end, which moves on, and the start, which does not."""
    return [
        jd.mean_reading("end", ds.measured_distance.isel(record=-1), over="seed"),
        jd.mean_reading("end after 40 steps", ds.measured_distance.isel(record=-1), over="seed"),
        jd.mean_reading("start", ds.measured_distance.isel(record=0), over="seed"),
    ]


def test_other_readings_are_found():
    records = {"end": (0.04, 0.06, 0.08), "end after 40 steps": (0.04, 0.06, 0.08), "start": (2.0, 4.0, 6.0)}
    answer = more_time.ask(trained.case(of=trained.measured(judge_read, records)))
    assert [f.subject for f in answer.findings] == ["end"]
    assert more_time.ask(trained.unrun(of=trained.measured(judge_read, None))).outcome == "not applicable"


def test_what_costs_too_much_is_not_asked():
    assert more_time.ask(trained.case(budget=0.0)).outcome == "not asked"


def test_what_is_not_trained_is_not_asked():
    assert more_time.ask(trained.unrun(evidence="algebra")).outcome == "not applicable"


def test_all_times_are_made_twice_as_long():
    grid = jd.grid(trained.Fit, steps=[20, 40])
    assert more_time.times(grid) == {"steps": [40, 80]}


def test_what_stands_at_twice_the_time_may_fall_later():
    case = trained.case(**EARLY | {"quick": jd.grid(trained.Fit, curvature=0.2)})
    (finding,) = more_time.ask(case).findings
    assert "eight times the time (steps = 320)" in finding.text
