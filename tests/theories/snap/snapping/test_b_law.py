"""The judges of Theorem 4."""

import pytest
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.snap.snapping import b_law
from tests.theories.snap.helpers import both_ways, passes

CLAIMS = {c.id: c for c in b_law.CLAIMS}


@pytest.mark.parametrize(
    ("judge", "breaches", "names", "misprints"),
    [
        (b_law.judge_law, ("steady",), ("b",), ("no quarter", "constant")),
        (b_law.judge_phases, ("steady",), ("early", "late", "limit"), ()),
        (b_law.judge_effect, ("steady", "both"), ("effect",), ()),
    ],
)
def test_judges_of_the_growth(pair_runs, judge, breaches, names, misprints):
    main = pair_runs["main"]
    assert passes(judge, main, "derived")
    for breach in breaches:
        assert not passes(judge, pair_runs[breach], "derived"), breach
    for form in misprints:
        assert not passes(judge, main, form), form
    for name in names:
        for distorted in both_ways(main, name):
            assert not passes(judge, distorted, "derived")


def test_rivals_of_the_growth(pair_runs):
    main = pair_runs["main"].sel(form="derived")
    assert not passes(b_law.judge_law, main.assign(predicted_b=main.four))
    assert not passes(b_law.judge_effect, b_law.ALWAYS_SLOWER(main))
    slope = jd.relative_error(main, "growth").where(main.time < 1e6)
    assert float(slope.max()) < 5e-3  # the law's derivative in ln t is that of the ODE


def test_four_is_wrong_by_a_quarter_for_more_classes_per_query(pair_runs):
    ds = pair_runs["main"].sel(form="derived")
    miss = abs(ds.four / ds.measured_b - 1).isel(time=-1, odds=0, seed=0)
    assert float(miss.sel(per_query=1.0)) < 5e-3 and float(miss.sel(per_query=[2.0, 4.0]).min()) > 0.25


@pytest.mark.parametrize("claim", ["snap.B_law", "snap.two_phase", "snap.lr_late"])
def test_figures_draw(pair_runs, claim):
    fig = Figure()
    CLAIMS[claim].plot(pair_runs["main"], fig)
    assert fig.axes
