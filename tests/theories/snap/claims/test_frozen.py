"""The judges of the end: frozen attention, and a winner that does not take all."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxdyn.theories.snap.claims import frozen
from tests.theories.snap.helpers import passes

CLAIMS = {c.id: c for c in frozen.CLAIMS}


def test_judge_of_frozen_attention(pair_runs):
    assert passes(frozen.judge_frozen, pair_runs["main"], "derived")
    for breach in ("steady", "restart"):
        assert not passes(frozen.judge_frozen, pair_runs[breach], "derived"), breach
    assert not passes(frozen.judge_frozen, frozen.still(pair_runs["main"]), "derived")


def test_judge_of_the_final_attention(law_runs):
    main = law_runs["main"]
    assert passes(frozen.judge_not_wta, main, "derived")
    assert not passes(frozen.judge_not_wta, law_runs["tilt"], "derived")
    assert not passes(frozen.judge_not_wta, frozen.winner(main), "derived")
    assert not passes(frozen.judge_not_wta, frozen.uniform(main), "derived")
    np.testing.assert_allclose(main.measured_entropy, main.predicted_entropy, rtol=1e-8)  # from the dominant logit alone


@pytest.mark.parametrize(("claim", "runs"), [("snap.frozen", "pair_runs"), ("snap.not_wta_reduced", "law_runs")])
def test_figures_draw(request, claim, runs):
    fig = Figure()
    CLAIMS[claim].plot(request.getfixturevalue(runs)["main"], fig)
    assert fig.axes
