"""Trials and judges of calibration: reference numbers, networks against NumPy, and judges that reject what is wrong."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.cal import CLAIMS, model
from jaxdyn.theories.cal import setting as settings
from jaxdyn.theories.cal.claims import edge, linear, noise, orders, pair, shuffle, stairs, steps


@functools.cache
def steps_data():
    return jd.sweep(steps.trial, jd.grid(settings.Steps, eta=[0.1, 0.05, 0.025], start=["random", "uv"]), 2)


@functools.cache
def pair_data():
    grid = jd.grid(settings.Pair, eta=[0.025, 0.0125, 0.00625, 0.2, 0.3], start=["reference", "random"])
    return jd.sweep(pair.trial, grid, 3)


@functools.cache
def noise_data():
    return jd.sweep(noise.noise_trial, jd.grid(settings.Noise, eta=[0.2, 0.46], steps=256, replicas=16), 8)


@functools.cache
def modes_data():
    return jd.sweep(noise.modes_trial, jd.grid(settings.Modes, eta=[0.3, 1.6], momentum=[0.0, 0.5]), 2)


def passed(checks):
    return all(c.passed for c in checks)


def distorted(ds, name, factor=1.1):
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


def test_claims_are_complete():
    ids = [c.id for c in CLAIMS]
    assert len(ids) == len(set(ids)) == 18 and all(i.startswith("cal.") for i in ids)
    for claim in CLAIMS:
        assert claim.controls and claim.plot is not None and claim.seeds >= 8
        assert len(claim.quick.cells()) > 0 and len(claim.grid("paper").cells()) > 0
        assert {"kvaerno5", "dopri8", "tsit5"} == set(CLAIMS[ids.index("cal.riccati")].quick.axes["solver"])


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Steps", {"eta": 0.0}),
        ("Steps", {"beta": 1.0}),
        ("Shuffled", {"shuffles": 3}),
        ("Noise", {"replicas": 1}),
        ("TwoLayer", {"strength": -1.0}),
        ("Deep", {"depth": 5.0}),
        ("Deep", {"depth": 1.5}),
        ("Symmetric", {"rank": 0}),
        ("Stairs", {"modes": 7}),
        ("Pair", {"steps": 0}),
        ("Modes", {"eta": -0.1}),
        ("Network", {"samples": 7}),
    ],
)
def test_settings_say_what_is_allowed(name, fields):
    with pytest.raises(jd.UsageError, match="is not allowed"):
        getattr(settings, name)(**fields)


def test_reference_numbers_of_finite_steps():
    end = steps_data().sel(start="uv").isel(seed=0, time=-1)
    np.testing.assert_allclose(end.predicted_flow[0, [0, 20]], [1.6011336, 0.5946670], atol=1e-7)
    lead = (end.predicted_lead - end.predicted_flow)[0, [0, 20]] / 0.1
    np.testing.assert_allclose(lead, [-0.0251584, 0.1164147], atol=1e-7)
    reference = {
        "flow": [0.01238, 0.00607, 0.00301],
        "lead": [9.3e-4, 2.2e-4, 5.3e-5],
        "modified": [2.2e-3, 5.5e-4, 1.4e-4],
    }
    for name, far in reference.items():
        found = orders.distance(end[f"measured_{name}"] - end[f"predicted_{name}"])
        np.testing.assert_allclose(found, far, rtol=0.03)


@pytest.mark.parametrize(("name", "order"), [("flow", 1), ("lead", 2), ("modified", 2)])
def test_order_judge_upholds_the_law_and_nothing_near_it(name, order):
    ds = steps_data()
    assert passed(orders.order_checks(ds, name, order, 0.15))
    assert not passed(orders.order_checks(distorted(ds, name, 1.001), name, order, 0.15))
    assert not passed(orders.order_checks(ds, name, 3 - order, 0.15))


def test_order_judge_needs_halvings():
    ds = steps_data()
    for etas in ([0.1, 0.05], [0.1, 0.05, 0.03]):
        with pytest.raises(jd.Inconclusive):
            orders.order_checks(ds.isel(eta=range(len(etas))).assign_coords(eta=etas), "flow", 1, 0.1)
    with pytest.raises(jd.Inconclusive):
        orders.order_checks(ds.isel(eta=0), "flow", 1, 0.1)


def test_richardson_limit_is_measured_in_its_own_error():
    eta = xr.DataArray(np.array([0.4, 0.2, 0.1]), dims="eta")
    law = (eta + 0.3 * eta**2) * xr.DataArray([1.0, -2.0], dims="entry")
    assert float(orders.limit_ratio(law, 1)) == pytest.approx(1.0)
    assert float(orders.limit_ratio(law + 0.5, 1)) > 3
    assert float(orders.limit_ratio(law + 0.5, 1, noise=1.0)) < 3


def test_invariant_judge():
    ds = steps_data()
    assert passed(steps.judge_invariant(ds))
    for name in ("balance", "drift", "lead_drift"):
        assert not passed(steps.judge_invariant(distorted(ds, name))), name


def test_a_wrong_leading_error_is_rejected():
    claim = next(c for c in CLAIMS if c.id == "cal.lead_error")
    wrong = next(c.breach for c in claim.controls.values() if callable(c.breach))
    assert not passed(claim.judge(wrong(steps_data())))


def test_pair_ends_where_the_reference_does():
    ds = pair_data()
    ends = ds.measured_edge.sel(start="reference", eta=[0.2, 0.3]).isel(seed=0)
    np.testing.assert_allclose(ends, [9.012, 2.97], atol=5e-3)
    np.testing.assert_allclose(ds.predicted_flow.sel(start="reference"), 9.1805, atol=5e-5)
    assert passed(pair.judge(ds))
    assert not passed(pair.judge(distorted(ds, "flow")))
    assert not passed(pair.judge(distorted(ds, "lead", 1.001)))
    assert not passed(pair.judge(distorted(ds, "edge", 0.5)))


def test_a_run_alone_is_the_run_of_the_sweep():
    grid = jd.grid(settings.Pair, eta=0.2, start="random")
    alone = jd.sweep(pair.trial, grid, [2], executor="vmap").isel(seed=0)
    among = pair_data().sel(eta=0.2, start="random", seed=2)
    for name in alone.data_vars:
        np.testing.assert_allclose(alone[name], among[name], rtol=1e-9)


def test_noise_judges():
    ds = noise_data()
    assert passed(noise.judge_variance(ds)) and passed(noise.judge_covariance(ds))
    assert not passed(noise.judge_variance(distorted(ds, "covariance")))
    assert not passed(noise.judge_variance(distorted(ds, "transient", 1.5)))
    assert not passed(noise.judge_covariance(distorted(ds, "covariance")))
    assert not passed(noise.judge_variance(ds.assign(predicted_covariance=ds.diffusion)))


def test_modes_judge():
    ds = modes_data()
    assert passed(noise.judge_modes(ds.sel(momentum=0.0)))
    assert not passed(noise.judge_modes(ds.sel(momentum=0.5)))
    for name in ("amplitude", "rate"):
        assert not passed(noise.judge_modes(distorted(ds.sel(momentum=0.0), name)))


def test_symmetric_factors_follow_their_closed_form():
    ds = jd.sweep(linear.symmetric_trial, jd.grid(settings.Symmetric, split=[0.0, 0.1], size=3, rank=2, samples=4), 2)
    assert passed(linear.judge(ds.sel(split=0.0)))
    assert not passed(linear.judge(distorted(ds.sel(split=0.0), "product", 1 + 1e-6)))
    miss = jd.relative_error(ds.sel(split=0.1), "product", "time row col")
    assert float(miss.min()) > 1e-3, "factors apart by 0.1 show"


def test_shuffle_judge_weighs_the_noise_of_the_mean():
    eta = xr.DataArray([0.08, 0.04, 0.02], dims="eta", coords={"eta": [0.08, 0.04, 0.02]})
    entry = xr.DataArray([1.0, -0.5], dims="entry")
    ones = xr.ones_like(eta * entry)
    ds = xr.Dataset({"predicted_mean": ones, "measured_mean": ones + eta**2 * entry, "standard_error": 1e-9 * ones})
    assert passed(shuffle.judge(ds))
    assert not passed(shuffle.judge(distorted(ds, "mean", 1.001)))
    assert not passed(shuffle.judge(ds.assign(measured_mean=ones + 0.1 * eta * entry)))


def test_batches_come_in_every_order(x64):
    def draw(epoch, reverse, cyclic):
        return shuffle.batch_order(jax.random.key(0), epoch, 3, reverse, cyclic)

    draws = jax.jit(jax.vmap(draw, (0, None, None)))
    forward, back, cyclic = (np.asarray(draws(jnp.arange(60), *flags)) for flags in ((False, False), (True, False), (True, True)))
    assert len({tuple(o) for o in forward}) == 6
    assert np.array_equal(forward[:, ::-1], back) and np.all(cyclic == np.arange(3))


def test_crossing_interpolates(x64):
    ts, y = jnp.array([0.0, 1.0, 3.0]), jnp.array([0.0, 0.2, 0.8])
    cross = jax.jit(stairs.crossing)
    assert float(cross(ts, y, 0.5)) == pytest.approx(2.0)
    assert float(cross(ts, y, 0.9)) == 3.0 and float(cross(ts, y + 1, 0.9)) == 0.0


def test_stairs_judge():
    times = xr.DataArray([[2.0, 3.0, 6.0]], dims=("seed", "mode"))
    rank = xr.DataArray([[0.0, 1.0, 2.0, 3.0]], dims=("seed", "plateau"))
    ds = xr.Dataset({"predicted_time": times, "measured_time": 1.02 * times, "predicted_rank": rank, "measured_rank": rank})
    assert passed(stairs.judge(ds))
    assert not passed(stairs.judge(distorted(ds, "time", 1.2)))
    assert not passed(stairs.judge(ds.assign(measured_time=1.02 * times[:, ::-1])))
    assert not passed(stairs.judge(ds.assign(measured_rank=rank + 1)))


def test_edge_judge_passes_over_runs_whose_flow_stays_below():
    edge_at = xr.DataArray([10.0, 20.0], dims="seed")
    ds = xr.Dataset({"predicted_sharpness": edge_at, "measured_sharpness": edge_at * 0.99, "before": edge_at, "flow": edge_at * 2})
    assert passed(edge.judge(ds))
    assert not passed(edge.judge(distorted(ds, "sharpness", 1.2)))
    below = ds.assign(flow=edge_at * [2, 0.5], measured_sharpness=edge_at * [1, 0.5], before=edge_at * [1, 0.5])
    assert passed(edge.judge(below))
    assert not passed(edge.judge(below.isel(seed=[1]))), "where no flow reaches the edge, the claim fails"


def test_tanh_network_and_its_sharpness(x64):
    sizes = (3, 4, 4, 1)
    params, v = (jax.jit(model.tanh_init, static_argnums=1)(jax.random.key(i), sizes) for i in (0, 2))
    x = jax.random.normal(jax.random.key(1), (6, 3), jnp.float64)
    y = edge.target(x)
    z = np.asarray(x)
    for w, b in zip(params.weights[:-1], params.biases[:-1], strict=True):
        z = np.tanh(z @ np.asarray(w).T + np.asarray(b))
    out = (z @ np.asarray(params.weights[-1]).T)[:, 0]
    np.testing.assert_allclose(jax.jit(model.tanh_apply)(params, x), out, rtol=1e-12)
    np.testing.assert_allclose(model.tanh_loss(params, x, y), 0.5 * np.mean((out - np.asarray(y)) ** 2), rtol=1e-12)

    flat, unflatten = jax.flatten_util.ravel_pytree(params)
    hessian = jax.jit(jax.hessian(lambda p: model.tanh_loss(unflatten(p), x, y)))(flat)
    _, top = jax.jit(edge._power, static_argnums=5)(params, v, x, y, 1.0, 500)
    assert float(top) == pytest.approx(float(np.linalg.eigvalsh(hessian)[-1]), rel=1e-6)


def test_missing_inputs_of_the_target_count_as_zero(x64):
    x = jnp.array([[0.3]])
    np.testing.assert_allclose(edge.target(x), 2 * (np.sin(0.6) + 1), rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_losses_against_numpy(x64, offset):
    rng = np.random.default_rng(0)
    u, d, m = rng.normal(size=(4, 2)), offset * rng.normal(size=(4, 2)), rng.normal(size=(4, 4))
    assert float(jax.jit(model.factor_loss)(u, m, d)) == pytest.approx(np.sum((m - u @ (u + d).T) ** 2) / 4)
    weights = [rng.normal(size=(3, 3)) for _ in range(3)]
    far = rng.normal(size=(3, 3)) - weights[2] @ weights[1] @ weights[0]
    m3 = far + weights[2] @ weights[1] @ weights[0]
    assert float(jax.jit(model.deep_loss)(weights, m3)) == pytest.approx(np.sum(far**2) / 2)
