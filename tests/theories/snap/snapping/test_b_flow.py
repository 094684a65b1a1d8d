"""The judges of Theorem 4 in the network's own flow."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.snap.snapping import b_flow
from tests.theories.snap.helpers import passes

CLAIMS = {c.id: c for c in b_flow.CLAIMS}
FAST = [1e-3, 2e-3]


def test_judge_of_the_memory(pair_flow_runs):
    main = pair_flow_runs.sel(form="memory")
    assert passes(b_flow.judge_memory, main) and passes(b_flow.judge_growth, main)
    assert not passes(b_flow.judge_growth, pair_flow_runs, "instant")
    for breach in (b_flow.NOTHING_MOVES, b_flow.PRINTED, b_flow.WITHOUT_MEMORY):
        assert not passes(b_flow.judge_memory, breach(main)), breach
    for distorted in (main.assign(predicted_b=factor * main.predicted_b) for factor in (0.7, 1.3)):
        assert not passes(b_flow.judge_memory, distorted)


def test_the_values_of_the_theory(pair_flow_runs):
    """K = 4, M = 13, odds .05, eta_Y/eta_Z = 1e-3, eta_Y t near 1e6: logit .51, Theorem 4's law 1.39."""
    run = pair_flow_runs.sel(ratio=1e-3, odds=0.05, per_query=1.0, form="memory").isel(seed=0)
    at = int(np.argmin(abs(np.log(run.eta_y_t.values / 1e6))))
    np.testing.assert_allclose([run.measured_b[at], run.predicted_b[at], run.instant[at]], [0.51, 0.51, 1.39], rtol=0.02)


def test_judge_of_the_linear_part(pair_flow_runs):
    ds = pair_flow_runs.sel(form="instant")
    slow, fast = ds.sel(ratio=[10.0]), ds.sel(ratio=FAST)
    assert passes(b_flow.judge_linear, slow) and not passes(b_flow.judge_linear, fast)
    for breach in (b_flow.NOTHING_MOVES, b_flow.EVERY_STEP):
        assert not passes(b_flow.judge_linear, breach(slow)), breach


def test_judges_of_the_end(pair_flow_runs):
    main = pair_flow_runs.sel(form="memory", ratio=FAST)
    assert passes(b_flow.judge_frozen, main) and passes(b_flow.judge_effect, main)
    for breach in (b_flow.NOTHING_MOVES, b_flow.PRINTED, b_flow.WITHOUT_MEMORY):
        assert not passes(b_flow.judge_frozen, breach(main)) and not passes(b_flow.judge_effect, breach(main)), breach
    for breach in (b_flow.TRAINED_DECODER, b_flow.BOTH_RATES):
        assert not passes(b_flow.judge_effect, breach(main)), breach
    for distorted in (main.assign(predicted_move=factor * main.predicted_move) for factor in (0.7, 1.3)):
        assert not passes(b_flow.judge_frozen, distorted)
    with pytest.raises(jd.Inconclusive, match="a ratio and its double"):
        b_flow.judge_effect(main.sel(ratio=[1e-3]))


@pytest.mark.parametrize("claim", ["snap.B_memory", "snap.B_law_flow"])
def test_figures_draw(pair_flow_runs, claim):
    fig = Figure()
    CLAIMS[claim].plot(pair_flow_runs, fig)
    assert fig.axes
