"""Judges and figures of Theorem 4 in its reduced dynamics."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.nonlinear import thm4
from jaxdyn.theories.joma.nonlinear.critical import ATTENTIONS
from jaxdyn.theories.joma.nonlinear.thm4 import Critical, trial
from tests.theories.joma.helpers import distorted, panels, upheld


def test_every_token_starts_below_mu():
    with pytest.raises(jd.UsageError, match="start < mu_low"):
        thm4.Critical(start=0.6)


CLAIMS = {c.id: c for c in thm4.CLAIMS}


@pytest.fixture(scope="module")
def critical_runs():
    return jd.sweep(trial, jd.grid(Critical, attention=list(ATTENTIONS), tokens=3), 2)


@pytest.mark.parametrize(
    ("judge", "attention", "names"),
    [
        (thm4.judge_thm4, "exp", ["clock", "speed"]),
        (thm4.judge_offset, "exp", ["bend"]),
        (thm4.judge_orbit, "normalised", ["orbit", "softmax_time"]),
        (thm4.judge_linear, "linear", ["linear_speed"]),
    ],
)
def test_critical_judges(critical_runs, judge, attention, names):
    ds = critical_runs.sel(attention=attention)
    assert int((ds.status != 0).sum()) == 0
    assert upheld(judge, ds)
    for name in names:
        assert not upheld(judge, distorted(ds, name, 1.1))
    assert not upheld(judge, critical_runs.sel(attention="none"))


@pytest.mark.parametrize("claim", ["joma.thm4", "joma.thm4_offset", "joma.thm4_linear", "joma.time_change"])
def test_critical_figures_draw(critical_runs, claim):
    assert panels(CLAIMS[claim], critical_runs)
