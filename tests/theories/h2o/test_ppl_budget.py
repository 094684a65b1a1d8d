"""Perplexity by cache budget: trials and judges."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.engine.judging.check import Check
from jaxdyn.errors import UsageError
from jaxdyn.nn.cache.budgets import POLICIES
from jaxdyn.theories.h2o.ppl_budget import claims
from jaxdyn.theories.h2o.ppl_budget.trial import BUDGETS, Recall, shares, trial
from tests.theories.galore.helpers import passed

# Short training on recall, then all policies and budgets.

SMALL = {"length": 20, "width": 8, "hidden": 8, "fillers": 4, "keys": 2, "values": 2, "steps": 20, "records": 2, "texts": 4}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Recall, asking=[0.0, 0.25], **SMALL), 2)
    assert ds.sizes["policy"] == 9 and ds.budget.values.tolist() == list(BUDGETS) and ds.step.values.tolist() == [0, 10, 20]
    assert float(ds.curve.isel(step=-1).max()) < float(ds.curve.isel(step=0).min())
    full = ds.measured_nats.sel(policy="full")
    np.testing.assert_allclose(full, full.isel(budget=0, drop=True).broadcast_like(full), rtol=1e-5)
    np.testing.assert_allclose(full.isel(budget=-1), ds.curve.isel(step=-1), rtol=1e-4)
    whole = ds.measured_nats.isel(budget=-1)  # a cache for everything gives up nothing
    np.testing.assert_allclose(whole, whole.sel(policy="full", drop=True).broadcast_like(whole), rtol=1e-5)
    assert float(ds.measured_lost.sel(budget=0.1, policy="recent").min()) > 0.3
    assert bool((ds.measured_copy.sel(asking=0.0) == 0).all() and (ds.measured_tight.max() <= 1 + 1e-4))
    np.testing.assert_allclose(ds.uniform, sum(1 / i for i in range(1, 21)) / 20, rtol=1e-5)
    assert bool((ds.measured_top > 0.05).all() and (ds.measured_top < 1).all())


def test_shares():
    b = np.zeros((1, 1, 1, 40, 40))
    b[..., 3] = 0.75
    b[..., 7] = 0.25
    assert float(shares(b)) == 1.0


@pytest.mark.parametrize("wrong", [{"steps": 30, "records": 4}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Recall(**wrong)


# Judges of eviction in trained decoders, on made-up losses.

COST = {"full": 0, "recent": 1, "random": 0.9, "streaming": 0.8, "sum": 0.5, "mean": 0.5, "decay": 0.5, "anti": 1.1, "oracle": 0.1}


def made(scale=1.0, runs=8):
    """Eight runs: costs fall in proportion to what is left out, and are lost weight times one nat."""
    rng = np.random.default_rng(0)
    out = np.array([1 - b for b in BUDGETS])
    cost = np.array([COST[p] for p in POLICIES])[:, None] * out
    noise = 0.01 * rng.normal(size=(runs, 1, 1))
    dims = ("seed", "policy", "budget")
    top = np.stack([np.full(runs, 0.2), 0.3 + 0.01 * rng.normal(size=runs)], 1)
    return xr.Dataset(
        {
            "measured_nats": (dims, 1.5 + scale * cost + noise),
            "measured_copy": (dims, 0.2 + scale * cost + noise),
            "measured_lost": (dims, np.broadcast_to(cost, (runs, *cost.shape))),
            "measured_tight": (dims, np.full((runs, *cost.shape), 0.9) + 0.01 * noise),
            "measured_top": (("seed", "step"), top),
            "uniform": (("seed",), np.full(runs, 0.19)),
            "right": (("seed", "step"), np.broadcast_to([0.0, 0.95], (runs, 2))),
        },
        coords={"policy": list(POLICIES), "budget": list(BUDGETS), "step": [0, 400]},
    )


def decided(checks):
    return passed([c for c in checks if not c.gate])


def readings(found):
    return {r.name: r.value for r in found if not isinstance(r, Check)}


def gates(found):
    return [c.passed for c in found if isinstance(c, Check)]


def test_heavy_hitters_against_the_rest():
    assert decided(claims.judge_budget(made())) == [True] * 6
    assert decided(claims.judge_budget(made(0.0))) == [False] * 6
    assert decided(claims.judge_budget(claims.ROOMY(made()))) == [False] * 6
    assert claims.ALIKE.keys() == {c.name for c in claims.judge_budget(made()) if not c.gate}
    poor = made().assign(right=0.5 * made().right)
    assert [c.passed for c in claims.judge_budget(poor) if c.gate] == [False]


def test_costs_of_every_policy():
    found = readings(claims.judge_order(made()))
    assert len(found) == 8 + len(claims.PAIRS) and claims.FREE.keys() < found.keys()
    assert list(found.values())[:8] == pytest.approx([0.8 * COST[p] for p in POLICIES if p != "full"])
    assert list(readings(claims.judge_order(made(0.0))).values()) == pytest.approx([0] * len(found))
    plain = made(0.1).assign(curve=(("seed", "step"), np.broadcast_to([4.0, 1.0], (8, 2))))
    assert readings(claims.judge_markov(plain)).keys() == claims.FREE.keys() and gates(claims.judge_markov(plain)) == [True]
    assert float(claims.over(made(), "sum", "full").mean()) == pytest.approx(0.5 * 0.8)


def test_share_of_the_heaviest():
    assert list(readings(claims.judge_share(made())).values()) == pytest.approx([0.1, 0.11], abs=0.01)


def test_lost_weight():
    assert list(readings(claims.judge_loss(made())).values()) == pytest.approx([0.9, 1, 1], abs=0.01)
    assert gates(claims.judge_loss(made())) == [True, True]
    permuted = list(readings(claims.judge_loss(claims.PERMUTED(made()))).values())
    assert permuted[1] < 0.9 and permuted[2] < 0.9
    assert gates(claims.judge_loss(jd.scaled(measured_tight=2.0)(made()))) == [True, False]


@pytest.mark.parametrize("plot", [claims.plot_budget, claims.plot_markov, claims.plot_share, claims.plot_loss])
def test_plots(plot):
    fig = Figure()
    plot(made(), fig)
    assert fig.axes and all(ax.lines for ax in fig.axes)
