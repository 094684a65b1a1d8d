"""Luck: claims that hold on some seeds only are found; their stated level is not held against them."""

import dataclasses

import pytest
from scipy import stats

import jaxdyn as jd
from jaxdyn.attacks import luck
from jaxdyn.engine.judging.check import Check
from tests.attacks import trained


def judge_lucky(ds):
    """A bound on every run that a fifth of all sets break."""
    return [*trained.judge(ds), jd.at_most("luck", ds.luck, 0.95)]


LUCKY = {"rivals": {"nothing": jd.off({"error": 1.0, "luck": 2.0})}, "seeds": 4}


def test_a_claim_that_holds_on_some_seeds_is_found():
    case = trained.case(judge=judge_lucky, **LUCKY)
    answer = luck.ask(case)
    assert answer.facts["sets"] == luck.SETS and answer.facts["level"] == 0
    assert answer.facts["others"] == answer.facts["verdicts"].count("refuted") > 0
    assert [f.subject for f in answer.findings] == ["seeds"] and "luck" in answer.findings[0].text


def test_a_right_claim_stands():
    answer = luck.ask(trained.case())
    assert answer.outcome == "noticed" and answer.facts["others"] == 0


def judge_mean(ds):
    return [
        jd.mean_within("mean", ds.luck, over="seed", high=1.0),
        jd.mean_within("other", ds.luck, over="seed", high=1.0, level=0.99),
        jd.at_most("error", 0.0 * ds.luck, 1.0),
    ]


def test_the_stated_level_is_that_of_all_intervals_over_all_looks():
    fields = {"rivals": {"nothing": jd.off({"mean": 2.0, "other": 2.0, "error": 2.0})}, "seeds": 8}
    case = trained.case(judge=judge_mean, controls={"more": lambda ds: ds.assign(luck=ds.luck + 3)}, **fields)
    assert case.result.verdict == "upheld" or case.result.checks
    assert luck.stated_level(case) == pytest.approx(0.003 + 0.01)
    later = dataclasses.replace(case.result.task, main=dataclasses.replace(case.result.task.main, seeds=range(16)))
    checks = [Check("mean", 0.5, (0.0, 1.0), True, level=1 - 0.003 / 4)]
    result = dataclasses.replace(case.result, task=later, checks=checks)
    assert luck.stated_level(dataclasses.replace(case, result=result)) == pytest.approx(0.003), "the second look spends a quarter"


def test_a_measured_claim_states_the_level_of_its_records():
    one = trained.measured(lambda ds: [jd.mean_reading("end", ds.luck, over="seed")], {"end": (0.1, 0.5, 0.9)})
    assert luck.stated_level(trained.case(of=one)) == pytest.approx(0.003)


@pytest.mark.parametrize(("hits", "sets"), [(0, 1), (1, 20), (20, 20), (3, 7)])
def test_the_interval_is_exact(hits, sets):
    low, high = luck.share_interval(hits, sets)
    assert low <= hits / sets <= high
    if hits:
        assert stats.binom.sf(hits - 1, sets, low) == pytest.approx(0.05)
    if hits < sets:
        assert stats.binom.cdf(hits, sets, high) == pytest.approx(0.05)


def test_one_refusal_in_twenty_is_within_the_level_of_one_interval():
    assert luck.share_interval(1, 20)[0] < 0.003 < luck.share_interval(2, 20)[0]


def test_one_seed_means_that_nothing_is_random():
    assert luck.ask(trained.unrun(seeds=1)).outcome == "not applicable"


def test_sets_are_as_many_as_the_budget_allows(monkeypatch):
    monkeypatch.setattr(luck, "seconds_of", lambda *tasks: 10.0 + len(tasks))
    assert luck.ask(trained.case(budget=13.5)).facts["sets"] == 3
    assert luck.ask(trained.case(budget=10.5)).outcome == "not asked"
