"""The judges of the end: frozen attention, and a winner that does not take all."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxdyn.theories.snap.snapping import frozen
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in frozen.CLAIMS}


def test_judge_of_frozen_attention(pair_runs):
    assert passes(frozen.judge_frozen, pair_runs["main"], "derived")
    for breach in ("steady", "restart"):
        assert not passes(frozen.judge_frozen, pair_runs[breach], "derived"), breach
    assert not passes(frozen.judge_frozen, frozen.NOTHING_MOVES(pair_runs["main"]), "derived")


def test_judge_of_the_final_attention(law_runs):
    main = law_runs["main"]
    assert passes(frozen.judge_not_wta, main, "derived")
    assert not passes(frozen.judge_not_wta, law_runs["tilt"], "derived")
    failing = {"ONE_WINNER": [False, False, True, True], "AS_IT_STARTS": [False, True, False, True]}
    for name, outcome in failing.items():
        rival = getattr(frozen, name)(main.sel(form="derived"))
        assert [c.passed for c in frozen.judge_not_wta(rival)] == outcome, name
    for distorted in both_ways(main, "entropy"):
        assert not passes(frozen.judge_not_wta, distorted, "derived")
    np.testing.assert_array_less(main.predicted_entropy, frozen.first_entropy(main))


@pytest.mark.parametrize(("claim", "runs"), [("snap.frozen", "pair_runs"), ("snap.not_wta_reduced", "law_runs")])
def test_figures_draw(request, claim, runs):
    fig = Figure()
    CLAIMS[claim].plot(request.getfixturevalue(runs)["main"], fig)
    assert fig.axes
