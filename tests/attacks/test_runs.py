"""New runs: of the claim's trial without its controls, on its seeds or on fresh ones, within the budget."""

import pytest

import jaxdyn as jd
from jaxdyn.attacks import runs
from jaxdyn.attacks.case import Budget
from tests.attacks import trained


def test_runs_are_made_without_controls_and_paid():
    case = trained.case()
    task = runs.task_of(case, {"width": 2})
    assert task.requests == [task.main] and task.main.seeds == case.result.task.main.seeds
    (data,) = runs.make(case, [task], 1.0)
    assert data.sizes["seed"] == 4 and float(data.width.max()) == 2
    assert 0 < case.time.spent < case.budget
    assert runs.own_seconds(case) < runs.seconds_of(case.result.task)


def test_fresh_sets_share_no_seed():
    case = trained.case(max_seeds=8)
    one, two = runs.fresh(case), runs.fresh(case, 1)
    assert len(one) == len(case.result.task.main.seeds) and one[0] == runs.FRESH
    assert set(range(one[0], one[0] + 8)).isdisjoint(two), "nor once seeds are added"


def test_what_the_judge_says_of_other_runs():
    case = trained.case()
    (data,) = runs.make(case, [runs.task_of(case, {"doubled": 1.0})], 1.0)
    wrong = runs.judge(case.claim, data)
    assert wrong.verdict == "refuted" and wrong.why.startswith("error: ") and runs.opposite(case.claim, wrong)
    right = runs.judge(case.claim, case.data)
    assert right.verdict == "upheld" and not runs.opposite(case.claim, right)
    assert runs.judge(case.claim, None).verdict == "error"
    assert runs.judge(case.claim, case.data.assign(status=case.data.status + 1)).verdict == "inconclusive"


def test_values_that_are_not_allowed_are_refused():
    with pytest.raises(jd.UsageError):
        runs.task_of(trained.case(), {"width": 0})


def test_a_budget_is_spent():
    budget = Budget(3.0)
    budget.spend(2.0)
    assert budget.left == 1.0
    budget.spend(2.0)
    assert budget.left == 0.0
