"""The judges of Theorem 2, on the reduced dynamics and on the network's own flow."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxdyn.theories.snap.scan import thm2_common
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in thm2_common.CLAIMS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "wrong", "name"),
    [(thm2_common.judge_up, (), "rise"), (thm2_common.judge_fall, ("unequal",), "fall")],
)
def test_judges_of_the_flow(laws_flow_runs, judge, wrong, name):
    main = laws_flow_runs["main"]
    assert passes(judge, main)
    for breach in wrong:
        assert not passes(judge, laws_flow_runs[breach]), breach
    for other in (thm2_common.DESCENT, thm2_common.STILL):
        assert not passes(judge, other(main))
    for distorted in both_ways(main, name):
        assert not passes(judge, distorted)
    assert not passes(thm2_common.judge_fall, thm2_common.ALL_RISE(main))


def test_judge_of_unequal_common_tokens(laws_flow_runs):
    assert passes(thm2_common.judge_some, laws_flow_runs["unequal"].sel(ratio=[0.1]))
    assert not passes(thm2_common.judge_some, laws_flow_runs["main"])


def test_judge_of_the_reduced_dynamics(law_runs):
    assert passes(thm2_common.judge_down, law_runs["main"], "derived")
    for breach in ("unequal", "table", "descent"):
        assert not passes(thm2_common.judge_down, law_runs[breach], "derived"), breach


def test_distinct_tokens_gain_by_the_pressure_times_f_squared(law_runs):
    main = law_runs["main"]
    np.testing.assert_allclose(main.measured_rise, main.predicted_rise, rtol=1e-9)
    assert (main.z_own.diff("save") > 0).all()


def test_the_table_of_unequal_common_tokens(law_runs):
    assert passes(thm2_common.judge_unequal, law_runs["table"].isel(per_query=[0]), "derived")
    assert not passes(thm2_common.judge_unequal, law_runs["main"].isel(per_query=[0]), "derived")
    z = law_runs["table"].z.isel(eta_z=0).isel({"per_query": 0, "seed": 0, "class": 0, "save": -1}).values
    np.testing.assert_allclose(z[[0, 1, 4]], [0.0045, -0.1448, 0.1402], atol=5e-5)


@pytest.mark.parametrize(
    ("claim", "runs", "kind"),
    [
        ("snap.common_down", "law_runs", "main"),
        ("snap.distinct_up", "laws_flow_runs", "main"),
        ("snap.unequal_commons", "law_runs", "table"),
    ],
)
def test_figures_draw(request, claim, runs, kind):
    fig = Figure()
    CLAIMS[claim].plot(request.getfixturevalue(runs)[kind], fig)
    assert fig.axes
