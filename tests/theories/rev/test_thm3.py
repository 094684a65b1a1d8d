"""Judge of the test sequences of Theorem 3."""

from jaxdyn.theories.rev import thm3
from tests.theories.rev.helpers import distorted, passed, plain


def test_test_judges(cot_runs):
    assert passed(thm3.judge_test, plain(cot_runs))
    assert not passed(thm3.judge_test, distorted(plain(cot_runs), "test", 1.1))
    assert not passed(thm3.judge_test, thm3.AS_TRAINED(plain(cot_runs)))
    assert not passed(thm3.judge_test, plain(cot_runs, leak=1.0))
