"""Scan & Snap's chapter on snapping."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.snap.snapping import b_flow, b_law, common_pair, frozen, memory_rate, transition
from jaxdyn.theories.snap.snapping.common_pair import Pair
from jaxdyn.theories.snap.snapping.common_pair_flow import PairFlow
from tests.theories.snap.helpers import both_ways, passes

# The pair: how far B has grown.


def test_a_query_has_no_more_classes_than_there_are():
    with pytest.raises(UsageError, match="per_query is at most classes"):
        Pair(per_query=5.0)


@pytest.mark.slow
def test_growth_of_the_pair(pair_runs, x64):
    """The law's B is the logarithm of 1 + grown over q; at the end of the transition B has grown for large eta_Z alone."""
    ds = pair_runs["main"].isel(odds=0, seed=0)
    for per_query in (1.0, 2.0, 4.0):
        q, b = 2 * (1 + per_query), ds.predicted_b.sel(form="derived", per_query=per_query).values
        grown = [common_pair.log_argument(Pair(per_query=per_query), jnp.asarray(t)) for t in common_pair.TIMES[-2:]]
        np.testing.assert_allclose(np.log1p(grown) / q, b[-2:], rtol=1e-12)
        assert float(ds.assumed_grown.sel(per_query=per_query)) < float(grown[0])
    small = Pair(eta_z=1000.0, odds=0.02, size=1e4)
    assert float(common_pair.log_argument(small, jnp.asarray(2 * 4 * np.log(1e4)))) == pytest.approx(0.12, rel=0.05)


# The flow with one common and one distinct token a class: what its runs record.


@pytest.mark.slow
def test_what_the_runs_record(pair_flow_runs):
    ds = pair_flow_runs.isel(seed=0)
    assert (ds.status == 0).all()
    np.testing.assert_allclose(ds.share, 0.25)
    q = 2 * (1 + ds.per_query)
    np.testing.assert_allclose(ds.argument, (q / 2 * ds.share * ds.scale**2).transpose(*ds.argument.dims) * 13 / 12, rtol=0.1)
    np.testing.assert_allclose(ds.measured_b.isel(time=0), ds.linear.isel(time=0), rtol=0.01)  # all laws begin alike


def test_common_pair_flow_a_query_has_no_more_classes_than_there_are():
    with pytest.raises(UsageError, match="per_query is at most classes"):
        PairFlow(per_query=5.0)


# The judges of Theorem 4.

CLAIMS = {c.id: c for c in b_law.CLAIMS}


@pytest.mark.parametrize(
    ("judge", "breaches", "names", "misprints"),
    [
        (b_law.judge_law, ("steady",), ("b",), ("no quarter", "constant")),
        (b_law.judge_end, ("steady",), ("b",), ("no quarter",)),
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


def test_growth_in_ln_t_is_that_of_the_ode(pair_runs):
    main = pair_runs["main"].sel(form="derived")
    slope = jd.relative_error(main, "growth").where(main.time < 1e6)
    assert float(slope.max()) < 5e-3


def test_late_growth_does_not_see_a_constant(pair_runs):
    """The end's judge takes increments: of the printed form without 1/4 a quarter is seen, a constant in B is not."""
    main = pair_runs["main"]
    assert passes(b_law.judge_end, main, "constant")
    (check,) = b_law.judge_end(main.sel(form="no quarter", per_query=[1.0]))
    assert check.value == pytest.approx(0.25, rel=0.02)


def test_four_is_wrong_by_a_quarter_for_more_classes_per_query(pair_runs):
    ds = pair_runs["main"].sel(form="derived")
    miss = abs(ds.four / ds.measured_b - 1).isel(time=-1, odds=0, seed=0)
    assert float(miss.sel(per_query=1.0)) < 5e-3 and float(miss.sel(per_query=[2.0, 4.0]).min()) > 0.25


@pytest.mark.parametrize("claim", ["snap.B_law", "snap.two_phase", "snap.lr_late"])
def test_figures_draw(pair_runs, claim):
    fig = Figure()
    CLAIMS[claim].plot(pair_runs["main"], fig)
    assert fig.axes


# The judges of Theorem 4 in the network's own flow.

B_FLOW_CLAIMS = {c.id: c for c in b_flow.CLAIMS}


FAST = [1e-3, 2e-3]


@pytest.mark.slow
def test_judge_of_the_memory(pair_flow_runs):
    main = pair_flow_runs.sel(form="memory")
    assert passes(b_flow.judge_memory, main) and passes(b_flow.judge_growth, main)
    assert not passes(b_flow.judge_growth, pair_flow_runs, "instant")
    for breach in (b_flow.NOTHING_MOVES, b_flow.PRINTED, b_flow.WITHOUT_MEMORY):
        assert not passes(b_flow.judge_memory, breach(main)), breach
    for distorted in (main.assign(predicted_b=factor * main.predicted_b) for factor in (0.7, 1.3)):
        assert not passes(b_flow.judge_memory, distorted)


@pytest.mark.slow
def test_the_values_of_the_theory(pair_flow_runs):
    """K = 4, M = 13, odds .05, eta_Y/eta_Z = 1e-3, eta_Y t near 1e6: logit .51, Theorem 4's law 1.39."""
    run = pair_flow_runs.sel(ratio=1e-3, odds=0.05, per_query=1.0, form="memory").isel(seed=0)
    at = int(np.argmin(abs(np.log(run.eta_y_t.values / 1e6))))
    np.testing.assert_allclose([run.measured_b[at], run.predicted_b[at], run.instant[at]], [0.51, 0.51, 1.39], rtol=0.02)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["snap.B_memory", "snap.B_law_flow"])
def test_b_flow_figures_draw(pair_flow_runs, claim):
    fig = Figure()
    B_FLOW_CLAIMS[claim].plot(pair_flow_runs, fig)
    assert fig.axes


# The judges of the end: frozen attention, and a winner that does not take all.

FROZEN_CLAIMS = {c.id: c for c in frozen.CLAIMS}


@pytest.mark.slow
def test_judge_of_the_final_attention(law_runs):
    main = law_runs["main"]
    assert passes(frozen.judge_not_wta, main)
    assert not passes(frozen.judge_not_wta, law_runs["tilt"])
    for theory in (frozen.ONE_WINNER, frozen.AS_IT_STARTS):
        assert [c.passed for c in frozen.judge_not_wta(theory(main))] == [False, True, True, True]
    one_winner, as_it_starts = (main.assign(measured_entropy=e) for e in (0 * main.measured_entropy, frozen.first_entropy(main)))
    assert [c.passed for c in frozen.judge_not_wta(one_winner)] == [False, False, True, True]
    assert [c.passed for c in frozen.judge_not_wta(as_it_starts)] == [False, True, False, True]
    for distorted in both_ways(main, "entropy"):
        assert not passes(frozen.judge_not_wta, distorted)
    np.testing.assert_array_less(main.predicted_entropy, frozen.first_entropy(main))


@pytest.mark.parametrize(("claim", "runs"), [("snap.frozen", "pair_runs"), ("snap.not_wta_reduced", "law_runs")])
def test_frozen_figures_draw(request, claim, runs):
    fig = Figure()
    FROZEN_CLAIMS[claim].plot(request.getfixturevalue(runs)["main"], fig)
    assert fig.axes


# The judges of the decoder's memory, on the network's own flow.

MEMORY_CLAIMS = {c.id: c for c in memory_rate.CLAIMS}


@pytest.fixture(scope="module")
def rare():
    base = jd.grid(memory_rate.Rare, common=[0.003], ratio=[0.1, 1.0, 1000.0], classes=2, distinct=2)
    return {name: jd.sweep(memory_rate.trial, base.replace(**f), 4) for name, f in {"main": {}, "crowd": {"crowd": 500.0}}.items()}


@pytest.mark.slow
def test_judges_of_the_memory(rare):
    main, crowd = rare["main"], rare["crowd"]
    assert passes(memory_rate.judge_early, main, "instant") and passes(memory_rate.judge_memory, main, "memory")
    assert not passes(memory_rate.judge_early, main, "printed") and not passes(memory_rate.judge_memory, main, "instant")
    assert not passes(memory_rate.judge_early, crowd, "instant") and not passes(memory_rate.judge_memory, crowd, "memory")
    assert not passes(memory_rate.judge_memory, jd.swap(predicted_z="instant")(main.sel(form="memory")))
    for distorted in both_ways(main, "z"):
        assert not passes(memory_rate.judge_early, distorted, "instant") and not passes(
            memory_rate.judge_memory, distorted, "memory"
        )


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["snap.memory", "snap.memory_lag"])
def test_memory_figures_draw(rare, claim):
    fig = Figure()
    MEMORY_CLAIMS[claim].plot(rare["main"], fig)
    assert fig.axes


# Where attention's growth leaves its early branch.


def test_transition_of_known_curves():
    """ln(1 + (t/tau)^2) has the slope 1 where 2x/(1 + x) = ln(1 + x), x = (t/tau)^2 = 3.92; a power never has a transition."""
    t = 0.01 * 2.0 ** np.arange(30)
    curves = [np.log1p((t / tau) ** 2) for tau in (1.0, 10.0)] + [t**2]
    found = transition.transition(xr.DataArray(curves, dims=("tau", "time"))).values
    np.testing.assert_allclose(0.01 * np.exp(found[:2]), [3.92**0.5, 10 * 3.92**0.5], rtol=0.05)
    assert np.isnan(found[2])


def planted_transitions(power, fast=0.0):
    """Curves that go like t^2 and then ln t, with a transition that goes like a power of ratio, another one for fast decoders."""
    ratio, t = np.array([1e-3, 2e-3, 10.0, 100.0]), 1e-4 * 2.0 ** np.arange(40)
    tau = ratio ** np.where(ratio < 1, power, fast) * np.where(ratio < 1, 10.0, 20.0)
    b = xr.DataArray(np.log1p((t / tau[:, None]) ** 2), dims=("ratio", "time"), coords={"ratio": ratio})
    return xr.Dataset({"measured_b": b, "predicted_b": b})


def test_judge_of_the_transition():
    good = planted_transitions(0.45)
    assert passes(transition.judge, good)
    for bad in (planted_transitions(0.0), planted_transitions(1.0), planted_transitions(0.45, fast=0.1)):
        assert not passes(transition.judge, bad)
    assert not passes(transition.judge, good.assign(predicted_b=planted_transitions(0.3).measured_b))
    with pytest.raises(jd.Inconclusive, match="two ratios of 5 or more"):
        transition.judge(good.sel(ratio=[1e-3, 10.0, 100.0]))
