"""The judges of Theorem 3, on the reduced dynamics and on the network's own flow."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.snap import population, published
from jaxdyn.theories.snap.scan import theorem3_gain
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in theorem3_gain.CLAIMS}


@pytest.mark.parametrize(
    ("judge", "wrong", "name"),
    [
        (theorem3_gain.judge_gain, ("leak", "tilt"), "gain"),
        (theorem3_gain.judge_tight, ("leak",), None),
        (theorem3_gain.judge_monotone, ("descent",), None),
    ],
)
def test_judges_of_the_reduced_dynamics(law_runs, judge, wrong, name):
    assert passes(judge, law_runs["main"], "derived")
    for breach in wrong:
        assert not passes(judge, law_runs[breach], "derived"), breach
    for distorted in both_ways(law_runs["main"], name) if name else []:
        assert not passes(judge, distorted, "derived")


def test_other_pairs_and_tokens_do_not_follow_the_theorem(law_runs):
    main = law_runs["main"].sel(form="derived")
    assert not passes(theorem3_gain.judge_gain, theorem3_gain.WITH_COMMON(main))
    assert not passes(theorem3_gain.judge_gain, law_runs["main"], "squared")
    weakest = theorem3_gain.WEAKEST(main)
    assert not passes(theorem3_gain.judge_tight, weakest)
    assert not passes(theorem3_gain.judge_monotone, weakest)


def test_the_published_residuals(flow_runs):
    ds = flow_runs["main"]
    np.testing.assert_allclose(ds.top, 0.2, atol=1e-9)
    residual = population.residual(ds).isel(other=0, seed=0)
    np.testing.assert_allclose(residual, [published.RESIDUALS[r] for r in ds.ratio.values], atol=2e-3)


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_judges_of_the_flow(laws_flow_runs):
    ds = laws_flow_runs["alone"]
    inside, slow = ds.sel(ratio=[100.0, 1000.0]), ds.sel(ratio=[0.1])
    assert passes(theorem3_gain.judge_shortfall, inside) and not passes(theorem3_gain.judge_shortfall, slow)
    for other in ("EXACT_GAIN", "NO_GROWTH", "COMPLETE"):
        assert not passes(theorem3_gain.judge_shortfall, getattr(theorem3_gain, other)(inside)), other
    assert passes(theorem3_gain.judge_plateau, inside)
    for other in ("SAME_TIMES", "BY_RATIO"):
        assert not passes(theorem3_gain.judge_plateau, getattr(theorem3_gain, other)(inside)), other
    with pytest.raises(jd.Inconclusive, match="at least 2 values of ratio"):
        theorem3_gain.judge_plateau(slow)
    assert passes(theorem3_gain.judge_monotone_flow, ds)
    for other in ("WEAKEST_FLOW", "FALLING", "STILL"):
        assert not passes(theorem3_gain.judge_monotone_flow, getattr(theorem3_gain, other)(ds)), other


def test_gains_and_bounds_by_ratio(laws_flow_runs):
    ds = laws_flow_runs["alone"]
    grown = [c.value for c in theorem3_gain.judge_ratio(ds)]
    assert grown[0] < 0.3 and 0.9 < grown[1] < grown[2] < 1
    assert not any(c.passed for c in theorem3_gain.judge_ratio(theorem3_gain.STAYS(ds)))
    slow = theorem3_gain.judge_ratio(theorem3_gain.FIRST_ORDER(ds))[0]
    assert slow.passed is False and slow.value < 0  # more than all of the growth would be missing
    lower = [c.value for c in theorem3_gain.judge_flow_bounds(ds)[::2]]
    assert lower[0] < 0.5 and lower[1] > 0.9


@pytest.mark.parametrize("claim", ["snap.rel_gain", "snap.bounds"])
def test_figures_of_the_reduced_dynamics_draw(law_runs, claim):
    fig = Figure()
    CLAIMS[claim].plot(law_runs["main"], fig)
    assert fig.axes


def test_figure_of_the_flow_draws(laws_flow_runs):
    fig = Figure()
    CLAIMS["snap.theorem3"].plot(laws_flow_runs["alone"], fig)
    assert fig.axes
