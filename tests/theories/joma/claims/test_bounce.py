"""The judges and the figure of the entropy bounce."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.claims import bounce

from ..helpers import distorted, panels, upheld

CLAIMS = {c.id: c for c in bounce.CLAIMS}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "logits"), [("joma.bounce", ["law", "trained"]), ("joma.bounce_softmax", ["softmax"])])
def test_bounce_judges(bounce_runs, name, logits):
    claim, runs = CLAIMS[name], bounce_runs.sel(logits=logits)
    ds = runs.sel(drive="critical")
    assert upheld(claim.judge, ds)
    assert not upheld(claim.judge, distorted(ds, "entropy", 1.1))
    assert not upheld(claim.judge, distorted(ds, "limit", 1.1))
    for rival in claim.rivals.values():
        assert not upheld(claim.judge, rival(ds))
    assert not upheld(claim.judge, runs.sel(drive="linear"))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        claim.judge(ds.isel(eta=slice(1)))


def test_entropy_only_falls_without_a_critical_point(bounce_runs):
    h = bounce_runs.sel(drive="linear", logits=["law", "trained"]).measured_entropy.isel(seed=0)
    assert float(h.diff("time").max()) < 1e-9 and float(h.isel(time=-1).max()) < 1e-6  # falls, never rises


def test_numbers_of_the_figure(bounce_runs):
    ds = bounce_runs.sel(drive="critical", eta=0.02)
    assert upheld(bounce.judge_figure, ds.sel(logits="law"))
    assert not upheld(bounce.judge_figure, ds.sel(logits="softmax"))
    softmax = ds.sel(logits="softmax")
    assert abs(float(softmax.lowest.item()) - 2.11) < 0.01 and abs(float(softmax["last"].item()) - 2.25) < 0.01


def test_figures_draw(bounce_runs):
    ds = bounce_runs.sel(drive="critical", draw="fig4")
    assert panels(CLAIMS["joma.bounce"], ds)
    assert panels(CLAIMS["joma.fig4"], ds.sel(logits="law", eta=0.02))
