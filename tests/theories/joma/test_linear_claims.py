"""Trials and judges of the claims on JoMA's linear activation, on the smallest grids that they can judge."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.setting import rebuild, swept_value
from jaxdyn.theories.joma.claims import fig3, linear, low_rank
from jaxdyn.theories.joma.claims import linear_trial as runs


@pytest.fixture(scope="module")
def data():
    grid = jd.grid(runs.LinearLayer, tokens=4, nodes=2, samples=8, boost=[1.0, 1.5], step=[8e-3, 4e-3, 2e-3])
    return jd.sweep(runs.trial, grid, seeds=2)


@pytest.fixture(scope="module")
def hyperbolic():
    grid = jd.grid(runs.HyperbolicLayer, tokens=4, samples=8, attention="linear", depth=[0.0, 1e-6, 1e-3, 1.0])
    return jd.sweep(runs.hyperbolic_trial, grid, seeds=2)


JUDGES = {
    "erf": (linear.erf_judge, ["ratio", "trained_ratio"]),
    "blow-up": (linear.blow_up_judge, ["escape", "limit", "path"]),
    "sparse": (linear.sparse_judge, ["entropy"]),
    "low rank": (low_rank.low_rank_judge, ["path", "srank_v", "srank_rate"]),
    "clock": (linear.clock_judge, ["ratio"]),
}


def inside(**fields):
    """A setting as a trial sees it: codes are numbers."""
    s = jd.grid(runs.LinearLayer, tokens=4, samples=8, **fields).cells()[0]
    static = {n: getattr(s, n) for n in s.static_fields}
    return rebuild(type(s), static, {n: swept_value(type(s), n, getattr(s, n)) for n in s.swept_fields})


def passes(judge, ds):
    return all(check.passed for check in judge(ds))


@pytest.mark.parametrize("name", JUDGES)
def test_derived_form_is_upheld_and_a_distortion_rejected(data, name):
    judge, variables = JUDGES[name]
    main = data.sel(form="derived")
    assert int(data.status.max()) == 0
    assert passes(judge, main), judge(main)
    for variable in variables:
        for factor in (0.9, 1.1):
            assert not passes(judge, main.assign({f"predicted_{variable}": factor * main[f"predicted_{variable}"]}))


@pytest.mark.parametrize("name", ["erf", "low rank"])
def test_printed_form_is_refuted(data, name):
    assert not passes(JUDGES[name][0], data.sel(form="printed"))


def test_breaches_of_the_prediction_are_rejected(data):
    main = data.sel(form="derived")
    assert not passes(linear.erf_judge, linear.width_two(main))
    assert not passes(linear.blow_up_judge, linear.scaled_saliency(main))


def test_width_two_is_the_printed_law(data):
    """From zero start the control's transformation and the printed form of the trial are the same numbers."""
    got = linear.width_two(data.sel(form="derived")).predicted_ratio
    np.testing.assert_allclose(got.isel(time=slice(-1)), data.predicted_ratio.sel(form="printed").isel(time=slice(-1)), rtol=1e-8)


def test_rising_entropy_is_rejected(data):
    main = data.sel(form="derived")
    bumped = main.measured_entropy.copy()
    bumped[..., 5] = bumped[..., 4] + 1e-6
    assert not passes(linear.sparse_judge, main.assign(measured_entropy=bumped))


def test_low_rank_needs_a_leading_row_for_its_verdict(data):
    main = data.sel(form="derived")
    with pytest.raises(jd.Inconclusive, match="boost"):
        low_rank.low_rank_judge(main.assign(margin=main.margin * 0 + 1.1))


def test_order_needs_three_steps(data):
    with pytest.raises(jd.Inconclusive):
        linear.erf_judge(data.sel(form="derived").isel(step=slice(2)))


def test_linear_attention_and_its_fixed_point(hyperbolic):
    assert passes(linear.zero_judge, hyperbolic), linear.zero_judge(hyperbolic)
    moving = hyperbolic.isel(depth=slice(1, None))
    assert passes(linear.hyperbolic_judge, moving)
    for name in ("z", "v"):
        assert not passes(linear.hyperbolic_judge, moving.assign({f"predicted_{name}": 1.1 * moving[f"predicted_{name}"]}))
    assert not passes(linear.zero_judge, hyperbolic.assign(measured_v=hyperbolic.measured_v + 1e-9))


def test_start_and_data_do_not_depend_on_the_other_fields(x64):
    """Runs of one seed share their random numbers, whatever else differs."""
    key = jax.random.key(4)
    (a, start), (b, moved) = (runs.build(s, key) for s in (inside(), inside(ratio=3.0, start_v=0.5, step=2e-3)))
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.g, b.g)
    assert float(np.abs(start.v).max()) == 0.0
    assert float(np.abs(moved.v).max()) > 0.0


def test_boost_and_tie_set_the_margin(data, x64):
    assert float(data.margin.sel(boost=1.5).min()) >= 1.5
    layer, _ = runs.build(inside(nodes=2, tie=1.0, boost=1.3), jax.random.key(0))
    norms = np.sort(np.linalg.norm(np.asarray(layer.x).T @ np.asarray(layer.g), axis=-1))
    assert norms[-1] == pytest.approx(norms[-2], rel=1e-13)


@pytest.mark.parametrize("wrong", [{"tokens": 1}, {"samples": 3}, {"step": 0.5}, {"step": 0.0}, {"horizon": 0.0}])
def test_wrong_fields_are_named(wrong):
    with pytest.raises(jd.UsageError):
        jd.grid(runs.LinearLayer, **wrong)


def test_fig3_judge():
    records = np.linspace(0, 1, 5)
    theory = xr.DataArray(
        np.tile(3 - 2 * records, (2, 2, 1)), dims=("data", "seed", "record"), coords={"data": ["gaussian", "random"]}
    )
    ds = xr.Dataset(
        {
            "predicted_srank_v": theory,
            "predicted_srank_rate": theory,
            "measured_srank_v": theory,
            "measured_srank_rate": theory,
            "drift": 0.1 * theory.record + 0 * theory,
        }
    )
    assert passes(fig3.fig3_judge, ds)
    assert not passes(fig3.fig3_judge, ds.assign(predicted_srank_v=1.2 * theory))
    assert not passes(fig3.fig3_judge, ds.assign(measured_srank_v=theory + 0.3))
