"""The judges of Theorem 2 on the reduced dynamics."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxdyn.theories.snap.claims import thm2
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in thm2.CLAIMS}


@pytest.mark.parametrize(
    ("judge", "wrong", "name"),
    [(thm2.judge_up, ("leak", "descent"), "rise"), (thm2.judge_down, ("unequal", "table", "descent"), None)],
)
def test_judges(law_runs, judge, wrong, name):
    assert passes(judge, law_runs["main"], "derived")
    for breach in wrong:
        assert not passes(judge, law_runs[breach], "derived"), breach
    for distorted in both_ways(law_runs["main"], name) if name else []:
        assert not passes(judge, distorted, "derived")


def test_the_table_of_unequal_common_tokens(law_runs):
    assert passes(thm2.judge_unequal, law_runs["table"].isel(per_query=[0]), "derived")
    assert not passes(thm2.judge_unequal, law_runs["main"].isel(per_query=[0]), "derived")
    z = law_runs["table"].z.isel(eta_z=0).isel({"per_query": 0, "seed": 0, "class": 0, "save": -1}).values
    np.testing.assert_allclose(z[[0, 1, 4]], [0.0045, -0.1448, 0.1402], atol=5e-5)


@pytest.mark.parametrize(("claim", "runs"), [("snap.distinct_up", "main"), ("snap.unequal_commons", "table")])
def test_figures_draw(law_runs, claim, runs):
    fig = Figure()
    CLAIMS[claim].plot(law_runs[runs], fig)
    assert fig.axes
