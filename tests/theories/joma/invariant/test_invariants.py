"""Theorem 1 of JoMA, exp and linear attention: trials on small grids, and judges that can say no."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.invariant import invariants as claims
from jaxdyn.theories.joma.invariant.one_block import OneBlock, identity_trial, invariant_trial


@pytest.fixture(scope="module")
def runs():
    grid = jd.grid(OneBlock, attention=["exp", "linear"], phi=["relu", "tanh"], optimizer=["gd", "adam"], noise=[0.0, 0.3])
    return jd.sweep(invariant_trial, grid, seeds=2)


def passed(checks):
    return [c.passed for c in checks if not c.gate]


def test_runs_that_hardly_move_have_no_order_but_only_few_may_do_so():
    refinement, axes = np.array([1, 2, 4]), ("seed", "refinement", "time", "token")
    drift = np.full((8, 3, 4, 2), 1e-9) / refinement[:, None, None]
    drift[0] = 1e-14 * np.random.default_rng(0).uniform(1, 2, (3, 4, 2))
    flow = {f"{side}_flow": (("seed", "time", "token"), np.ones((8, 4, 2))) for side in ("measured", "predicted")}
    both = {"measured_descent": (axes, drift), "predicted_descent": (axes, np.zeros_like(drift))}
    ds = xr.Dataset(flow | both, {"refinement": refinement})
    assert [c.passed for c in claims.judge_law(ds)] == [True] * 3
    assert [c.passed for c in claims.judge_law(ds.isel(seed=slice(3)))] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["exp", "linear"])
def test_law_holds_and_its_judge_can_say_no(runs, attention):
    main = runs.sel(attention=attention, optimizer="gd", noise=0.0)
    assert passed(claims.judge_law(main)) == [True, True]
    assert passed(claims.judge_law(claims.NOTHING_MOVES(main))) == [False, False]
    assert passed(claims.judge_law(claims.TWICE(main))) == [False, False]
    assert passed(claims.judge_law(main.assign(predicted_flow=1.1 * main.predicted_flow))) == [False, True]
    assert passed(claims.judge_law(runs.sel(attention=attention, optimizer="adam", noise=0.0))) == [True, False]
    assert passed(claims.judge_law(runs.sel(attention=attention, optimizer="gd", noise=0.3))) == [False, False]
    moved = abs(main.measured_flow.isel(time=-1) - main.measured_flow.isel(time=0)).max("token")
    assert bool((moved > 1e-3).all())


def test_single_query_law_changes_as_many_times_as_there_are_queries():
    start, change = 0.5, np.linspace(0, 1, 5)
    flat = xr.DataArray(np.tile(start + change, (2, 1)), dims=("queries", "time"), coords={"queries": [2.0, 3.0]})
    ds = claims.EACH_QUERY(xr.Dataset({"predicted_flow": flat, "predicted_descent": flat}))
    assert np.allclose(ds.predicted_flow, start + np.outer([2, 3], change))


def test_rivals_scale_the_change():
    start, change = 0.5, np.linspace(0, 1, 5)
    both = xr.DataArray(np.tile(start + change, (2, 1)), dims=("axis", "time"))
    for name, values, rival, factors in (
        ("ratio", [0.1, 10.0], claims.EQUAL_RATES, [10, 0.1]),
        ("tau", [0.5, 2.0], claims.NO_TEMPERATURE, [0.5, 2]),
    ):
        one = both.rename(axis=name).assign_coords({name: values})
        ds = rival(xr.Dataset({"predicted_flow": one, "predicted_descent": one}))
        assert np.allclose(ds.predicted_descent, start + np.outer(factors, change))


IDENTITY = jd.grid(
    OneBlock,
    attention=["exp", "linear"],
    phi="relu",
    fraction=[0.5, 1.0],
    optimizer=["gd", "momentum"],
    weight_decay=[0.0, 0.1],
    lr=0.05,
    horizon=2.0,
)


@pytest.fixture(scope="module")
def identity():
    return jd.sweep(identity_trial, IDENTITY, seeds=2)


def test_identity_holds_and_its_judge_can_say_no(identity):
    main = identity.sel(optimizer="gd")
    decay = main.sel(weight_decay=[0.1])
    for rival in (jd.swap(predicted_drift="increments"), jd.swap(predicted_drift="lost"), jd.swap(predicted_drift=0.0)):
        assert passed(claims.judge_identity(rival(decay))) == [False]
    assert float(abs(main.lost.sel(weight_decay=0.0)).max()) == 0.0
    assert passed(claims.judge_identity(main)) == [True]
    assert passed(claims.judge_identity(main.assign(predicted_drift=1.1 * main.predicted_drift))) == [False]
    assert passed(claims.judge_identity(identity.sel(optimizer="momentum"))) == [False]
    half, whole = (main.predicted_drift.sel(fraction=f).isel(time=-1) for f in (0.5, 1.0))
    assert bool((abs(half - whole).max("token") > 1e-6).all())  # mini-batches go another way


def test_the_same_sweep_has_the_same_bits(identity):
    assert identity.equals(jd.sweep(identity_trial, IDENTITY, seeds=2))


@pytest.mark.slow
def test_softmax_conserves_the_sum_of_the_logits():
    """With or without orthonormal embeddings and momentum; exp attention, Adam and weight decay change it."""
    fields = {"noise": [0.0, 0.3], "optimizer": ["gd", "momentum"], "queries": 2, "lr": 0.05, "horizon": 2.0, "phi": "tanh"}
    grid = jd.grid(OneBlock, attention="softmax", depth=[0, 2], loss=["squared", "entropy"], **fields)
    main = jd.sweep(identity_trial, grid, seeds=1)
    assert all(c.passed for c in claims.judge_total(main.isel(query=slice(2))))
    assert passed(claims.judge_total(claims.EXP_TOTAL(main.isel(query=slice(2))))) == [False]
    for breach in ({"attention": "exp"}, {"optimizer": "adam"}, {"weight_decay": 0.1}):
        ds = jd.sweep(identity_trial, grid.replace(**breach), seeds=1)
        assert not passed(claims.judge_total(ds.isel(query=slice(2))))[0]
