"""Judges of Theorem 3."""

from jaxdyn.theories.rev import bounds
from jaxdyn.theories.rev.claims import thm3
from tests.theories.rev.helpers import distorted, passed, plain


def test_early_data_are_rejected(reversal_runs):
    ds = plain(reversal_runs).isel(seed=slice(8))
    scaled = ds.assign(late=ds.late * 0.1 + (ds.late > 10) * 10)
    assert not passed(bounds.judge_bound, thm3.early(scaled))


def test_test_judges(reversal_runs):
    assert passed(thm3.judge_test, plain(reversal_runs))
    assert not passed(thm3.judge_test, distorted(plain(reversal_runs), "test", 1.1))
    assert not passed(thm3.judge_test, reversal_runs.sel(form="derived", context="entity", leak=1.0))
