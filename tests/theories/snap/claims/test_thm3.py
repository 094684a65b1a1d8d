"""The judges of Theorem 3, on the reduced dynamics and on the network's own flow."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.claims import thm3
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in thm3.CLAIMS}


@pytest.mark.parametrize(
    ("judge", "wrong", "name"),
    [
        (thm3.judge_gain, ("leak", "tilt"), "gain"),
        (thm3.judge_bounds, ("leak",), None),
        (thm3.judge_monotone, ("descent",), None),
    ],
)
def test_judges_of_the_reduced_dynamics(law_runs, judge, wrong, name):
    assert passes(judge, law_runs["main"], "derived")
    for breach in wrong:
        assert not passes(judge, law_runs[breach], "derived"), breach
    for distorted in both_ways(law_runs["main"], name) if name else []:
        assert not passes(judge, distorted, "derived")


def test_breaches_of_the_prediction(law_runs):
    main = law_runs["main"].sel(form="derived")
    assert not passes(thm3.judge_gain, thm3.with_common(main))
    assert not passes(thm3.judge_gain, law_runs["main"], "squared")
    weakest = thm3.weakest(main)
    assert not passes(thm3.judge_bounds, weakest)
    assert not passes(thm3.judge_monotone, weakest)


def test_the_published_residuals(flow_runs):
    ds = flow_runs["main"]
    np.testing.assert_allclose(ds.top, 0.2, atol=1e-9)
    residual = thm3.residual(ds).isel(other=0, seed=0)
    np.testing.assert_allclose(residual, [published.RESIDUALS[r] for r in ds.ratio.values], atol=2e-3)


def test_judge_of_the_flow(flow_runs):
    ds = flow_runs["main"]
    assert passes(thm3.judge_flow, ds)
    assert not passes(thm3.judge_flow, flow_runs["slow"])
    assert not passes(thm3.judge_flow, thm3.with_common(ds))
    for distorted in both_ways(ds, "gain"):
        assert not passes(thm3.judge_flow, distorted)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of ratio"):
        thm3.judge_flow(ds.isel(ratio=slice(2)))


@pytest.mark.parametrize("claim", ["snap.rel_gain", "snap.bounds"])
def test_figures_of_the_reduced_dynamics_draw(law_runs, claim):
    fig = Figure()
    CLAIMS[claim].plot(law_runs["main"], fig)
    assert fig.axes


def test_figure_of_the_flow_draws(flow_runs):
    fig = Figure()
    CLAIMS["snap.theorem3"].plot(flow_runs["main"], fig)
    assert fig.axes
