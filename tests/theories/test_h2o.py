"""Heavy hitters: caches, bounds and greedy choices on a few runs, shares against NumPy, budgets and refused settings."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.engine.judging.check import Check
from jaxdyn.errors import UsageError
from jaxdyn.instruments.instrument import NotApplicable
from jaxdyn.nn.cache import Policy, losses
from jaxdyn.nn.cache.budgets import POLICIES
from jaxdyn.theories.h2o import greedy_submodular
from jaxdyn.theories.h2o.frozen_cache_error import Eviction, Stream, cache_trial
from jaxdyn.theories.h2o.greedy_submodular import Sets, hardest, least_share
from jaxdyn.theories.h2o.greedy_submodular import trial as greedy_trial
from jaxdyn.theories.h2o.instrument import BUDGETS as INSTRUMENT_BUDGETS
from jaxdyn.theories.h2o.instrument import HEAVY, measure, uniform
from jaxdyn.theories.h2o.ppl_budget import claims
from jaxdyn.theories.h2o.ppl_budget.trial import BUDGETS, Recall, shares
from jaxdyn.theories.h2o.ppl_budget.trial import trial as ppl_budget_trial
from tests.instruments import plain
from tests.theories.galore.helpers import passed


def test_runs():
    ds = jd.sweep(cache_trial, jd.grid(Stream, recent=[1.0, 4.0, 8.0], spread=0.0), 2)
    np.testing.assert_array_equal(ds.measured_kept.sel(recent=1.0).values.reshape(-1, 8)[0], [*range(7), 95])
    np.testing.assert_array_equal(ds.measured_kept.sel(recent=4.0).values.reshape(-1, 8)[0], [0, 1, 2, 3, 92, 93, 94, 95])
    np.testing.assert_array_equal(ds.measured_kept.sel(recent=8.0).values.reshape(-1, 8)[0], range(88, 96))


@pytest.mark.parametrize("wrong", [{"recent": 9.0}, {"tokens": 8}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Stream(**wrong)


@pytest.mark.parametrize("wrong", [{"kept": 24.0}])
def test_error_bound_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Eviction(**wrong)


def test_the_hardest_instance_by_brute_force():
    with jax.enable_x64(True):
        cover = np.asarray(hardest())
    worth = lambda chosen: cover[:, list(chosen)].max(1).sum()  # noqa: E731
    assert max(worth(c) for c in itertools.combinations(range(12), 4)) == pytest.approx(4)
    chosen = []
    for _ in range(4):
        chosen.append(max(set(range(12)) - set(chosen), key=lambda v: worth([*chosen, v])))
    assert sorted(chosen) == [4, 5, 6, 7] and worth(chosen) / 4 == pytest.approx(least_share(4), abs=1e-8)


@pytest.mark.slow
def test_greedy_runs():
    ds = jd.sweep(greedy_trial, jd.grid(Sets, objective=["additive", "coverage", "logdet", "penalty"], growing=[0.0, 1.0]), 4)
    still = ds.sel(growing=0.0)
    np.testing.assert_allclose(
        still.measured_kept.sel(objective="additive"), still.predicted_kept.sel(objective="additive"), rtol=1e-12
    )
    assert bool((ds.measured_kept <= ds.predicted_kept * (1 + 1e-12)).all())
    share = still.measured_share
    np.testing.assert_allclose(ds.measured_hardest, least_share(4), atol=1e-7)
    np.testing.assert_allclose(share.sel(objective="penalty"), 1.001 / 4)
    assert float(share.sel(objective=["coverage", "logdet"]).min()) > least_share(4)


def test_greedy_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="growing is 0 or 1"):
        Sets(growing=2.0)


COVER = np.random.default_rng(0).uniform(size=(9, 6))


def value(chosen):
    return jnp.sum(jnp.max(jnp.where(chosen, COVER, 0), -1))


def worth(chosen):
    return COVER[:, sorted(chosen)].max(1).sum() if chosen else 0.0


def test_against_sets(x64):
    table = greedy_submodular.subsets(6, 3)
    assert table.shape == (20, 6) and set(table.sum(1)) == {3}
    added, kept = set(), set()
    for _ in range(3):
        added.add(max(set(range(6)) - added, key=lambda v: worth(added | {v})))
    np.testing.assert_array_equal(np.flatnonzero(greedy_submodular.add(value, 6, 3)), sorted(added))
    path, values = greedy_submodular.evict(lambda c, _: value(c), 6, 3), jnp.stack([value(row) for row in table])
    best = np.asarray(greedy_submodular.best(values, table))
    for i in range(6):
        kept.add(i)
        if len(kept) > 3:
            kept.remove(max(kept, key=lambda v: worth(kept - {v})))
        np.testing.assert_array_equal(np.flatnonzero(path[i]), sorted(kept))
        if i >= 2:
            expected = max(worth(set(c)) for c in itertools.combinations(range(i + 1), 3))
            assert best[i] == pytest.approx(expected, rel=1e-12)
    assert np.all(best[:2] == -np.inf)


def test_the_guarantee_falls_to_its_limit():
    assert greedy_submodular.least_share(1) == 1 and greedy_submodular.least_share(2) == 0.75
    assert greedy_submodular.least_share(10_000) == pytest.approx(1 - np.exp(-1), abs=1e-4)


# Short training on recall, then all policies and budgets.

SMALL = {"length": 20, "width": 8, "hidden": 8, "fillers": 4, "keys": 2, "values": 2, "steps": 20, "records": 2, "texts": 4}


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_short_runs():
    ds = jd.sweep(ppl_budget_trial, jd.grid(Recall, asking=[0.0, 0.25], **SMALL), 2)
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
def test_ppl_budget_wrong_settings_are_refused(wrong):
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


KINDS = {"H2O": "h2o", "recent": "window", "H2O's opposite": "anti_h2o"}


@pytest.fixture(scope="module")
def random():
    return measure(plain.model(), plain.TOKENS, plain.nothing)


@pytest.mark.slow
def test_shares_are_those_of_plain_attention(random):
    seen, nats = plain.pieces_of(plain.SHAPE, plain.model().params, plain.TOKENS[:, :-1])
    gets = np.sort(seen["attention"].sum(-2), -1)[..., ::-1]
    np.testing.assert_allclose(random.share, gets[..., :4].sum(-1) / gets.sum(-1), rtol=1e-4)
    rest = np.sort(seen["attention"].sum(-2)[..., 1:], -1)[..., ::-1]
    np.testing.assert_allclose(random.rest, rest[..., :4].sum(-1) / rest.sum(-1), rtol=1e-4)
    _, nats = plain.pieces_of(plain.SHAPE, plain.model().params, plain.TOKENS)
    np.testing.assert_allclose(random.full, nats[:, 9:].mean(-1), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_losses_are_those_of_caches_token_by_token(random, name):
    params = plain.model().params
    for budget in INSTRUMENT_BUDGETS:
        size = max(2, round(budget * 19))
        policy = Policy(kind=KINDS[name], size=size, recent=max(1, size // 2), positions="absolute")
        expected = jax.vmap(lambda t, p=policy: losses(plain.SHAPE, params, p, t)[1])(plain.TOKENS)
        np.testing.assert_allclose(random.nats.sel(policy=name, budget=budget), expected[:, 9:].mean(-1), rtol=1e-3)


@pytest.mark.parametrize("fields", [{}, {"window": 4}], ids=str)
def test_uniform_attention_has_the_share_that_is_predicted(fields):
    ds = measure(plain.uniform(plain.changed(**fields)), plain.TOKENS, plain.nothing)
    law = HEAVY.predict(ds)
    np.testing.assert_allclose(ds.share, law.share, rtol=1e-5)
    np.testing.assert_allclose(ds.rest, law.rest, rtol=1e-5)
    assert uniform(plain.SHAPE, 1000) == pytest.approx(0.2 * (1 - np.log(0.2)), rel=0.01)  # the integral of -ln x


@pytest.mark.slow
def test_a_planted_sink_takes_all_of_one_head():
    ds = measure(plain.planted(), plain.circles(length=40), plain.nothing)
    one = ds.share.isel(head=0, layer=0)
    assert float(one.min()) > 0.99
    cost = ds.nats.sel(budget=0.2).mean("piece") - ds.full.mean("piece")
    assert float(cost.sel(policy="recent")) > 0.3 and float(cost.sel(policy="H2O")) < 0.05  # H2O keeps the first token
    assert float(cost.sel(policy="H2O's opposite")) > 0.3


def test_other_attention_is_refused_in_a_sentence():
    with pytest.raises(NotApplicable, match="softmax attention"):
        measure(plain.model(plain.changed(attention="sigmoid")), plain.TOKENS, plain.nothing)
