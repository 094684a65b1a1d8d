"""Judges of Theorem 3."""

from jaxdyn.theories.rev import bounds, thm3
from tests.theories.rev.helpers import distorted, passed, plain, rejected, theory


def test_bound_judge(cot_runs):
    ds = plain(cot_runs)
    assert bounds.judge_bound(ds)[0].value > 0.9
    assert bounds.judge_bound(bounds.RIVALS["the bound with c = 1"](ds))[0].passed is False
    for broken in (thm3.early(ds), *(theory(rival)(ds) for rival in bounds.RIVALS.values())):
        assert rejected(bounds.judge_bound, broken)


def test_test_judges(cot_runs):
    assert passed(thm3.judge_test, plain(cot_runs))
    assert not passed(thm3.judge_test, distorted(plain(cot_runs), "test", 1.1))
    assert not passed(thm3.judge_test, thm3.AS_TRAINED(plain(cot_runs)))
    assert not passed(thm3.judge_test, plain(cot_runs, leak=1.0))
