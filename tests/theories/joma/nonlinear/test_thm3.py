"""The judge and the figure of Theorem 3."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.nonlinear import thm3
from jaxdyn.theories.joma.nonlinear.mixture_point import Mixture
from tests.theories.joma.helpers import distorted, panels, upheld


@pytest.fixture(scope="module")
def field_runs():
    grid = jd.grid(Mixture, activation=["relu", "tanh"], noise=["gauss"], tokens=5, components=2, samples=200_000)
    return jd.sweep(thm3.field_trial, grid, 4)


def test_field_judge(field_runs):
    ds = field_runs
    assert upheld(thm3.judge_field, ds)
    assert not upheld(thm3.judge_field, distorted(ds, "rate", 1.1))
    assert not upheld(thm3.judge_field, distorted(ds, "size", 0.9))
    for rival in thm3.CLAIMS[0].rivals.values():
        assert not upheld(thm3.judge_field, rival(ds))


def test_figure_draws(field_runs):
    assert len(panels(thm3.CLAIMS[0], field_runs)) == 2
