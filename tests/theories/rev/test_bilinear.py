"""The bilinear model of the reversal curse: network, trial and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import flow, plotting
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.theories.rev.bilinear import claims, model, trial
from tests.theories.rev.helpers import distorted, numpy_losses, passed

# The bilinear model against NumPy, and its reduced flow against that of the dense parameters.


def test_gaussian_and_orthonormal_tokens(x64):
    sample = jax.jit(lambda kind, d: model.sample_tokens(jax.random.key(0), kind, 30, d, 500))
    gaussian, orthonormal = (Code.of(kind, model.KINDS) for kind in model.KINDS)
    gauss = np.asarray(sample(gaussian, 400.0))
    assert np.all(gauss[:, 400:] == 0) and abs(np.mean(np.sum(gauss**2, 1)) - 1) < 0.06
    for d in (30.0, 64.0):
        frame = np.asarray(sample(orthonormal, d))
        np.testing.assert_allclose(frame @ frame.T, np.eye(30), atol=1e-12)
    assert np.linalg.matrix_rank(np.asarray(sample(orthonormal, 20.0))) == 20


def test_orthonormal_tokens_in_few_dimensions(x64):
    frame = np.asarray(model.sample_tokens(jax.random.key(0), Code.of("orthonormal", model.KINDS), 6, jnp.float64(4.0), 4))
    assert frame.shape == (6, 4) and np.all(np.linalg.norm(frame, axis=1) <= 1 + 1e-12)


def test_bilinear_losses(x64):
    w = jnp.asarray(np.random.default_rng(0).normal(size=(9, 9)))
    forward, reverse = numpy_losses(np.asarray(w), 3)
    np.testing.assert_allclose(model.loss(w, 3), forward, rtol=1e-12)
    np.testing.assert_allclose(model.reverse_loss(w, 3), reverse, rtol=1e-12)
    np.testing.assert_allclose(model.objective(w, 3, 0.5), forward + 0.5 * reverse, rtol=1e-12)


@pytest.mark.slow
def test_flow_of_theta_and_of_its_effective_weights_agree(x64):
    n, m, d = 2, 6, 5
    v = model.sample_tokens(jax.random.key(1), 0, m, jnp.float64(d), d)
    t = np.array([0.0, 5.0, 20.0])

    def theta_of(a, symmetric):
        return a + symmetric * (a.T - a) / 2

    def cost(a, symmetric):
        return model.objective(model.effective(theta_of(a, symmetric), v, n), n, 0.3)

    @jax.jit
    def both(symmetric):
        start = theta_of(0.1 * jax.random.normal(jax.random.key(2), (d, d), jnp.float64), symmetric)
        full = jax.vmap(theta_of, (0, None))(flow.gradient_flow(cost, start, t, symmetric).ys, symmetric)
        args = model.Flow(v @ v.T, jnp.float64(0.3), symmetric)
        reduced = flow.solve(lambda t, w, a: model.field(w, a, n), model.effective(start, v, n), t, args)
        return reduced.ys, jax.vmap(lambda theta: model.effective(theta, v, n))(full)

    for symmetric in (0.0, 1.0):
        np.testing.assert_allclose(*both(jnp.float64(symmetric)), atol=1e-8)


# Flows that are refused.


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"d": 400.0}, "max_d"),
        ({"d": 1.5}, "d=1.5"),
    ],
)
def test_impossible_flows(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        trial.Bilinear(**fields)


# Judges of the bilinear model.


def synthetic(exponent):
    """Losses whose reverse follows the forward one with exponents of this size, a function of d, times a normal number."""
    d, time, seed = [20.0, 50.0, 100.0, 200.0], np.arange(6), np.arange(16)
    forward = xr.DataArray(3 * np.exp(-1.3 * time), {"time": time}, "time") * xr.ones_like(
        xr.DataArray(seed, {"seed": seed}, "seed")
    )
    size = xr.DataArray([exponent(x) for x in d], {"d": d}, "d")
    random = xr.DataArray(np.random.default_rng(0).normal(size=16), {"seed": seed}, "seed")
    reverse = 3 * (forward / 3) ** (size * random)
    names = {"measured_forward": forward + 0 * size, "measured_reverse": reverse, "measured_floor": reverse}
    return xr.Dataset(names | {"predicted_floor": 3 * (forward / 3) ** claims.EXPONENT + 0 * size}).transpose("d", "seed", "time")


def test_trend_of_the_exponent():
    ds = synthetic(lambda d: 1.5 / d)
    assert passed(claims.judge_ratio, ds)
    np.testing.assert_allclose(claims.slope(claims.largest(ds)), -1, atol=1e-9)
    assert not passed(claims.judge_ratio, synthetic(lambda d: 0.005))
    assert not passed(claims.judge_ratio, synthetic(lambda d: 30 / d))
    for factor in (1.1, 0.9):
        assert not passed(claims.judge_ratio, distorted(ds, "floor", factor))
    for exponent in (0.0, 1.0):
        assert not passed(claims.judge_ratio, claims.floor_at(exponent)(ds))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of d"):
        claims.judge_ratio(ds.sel(d=[20, 50]))
    with pytest.raises(jd.Inconclusive, match="of 200 or more"):
        claims.judge_ratio(ds.sel(d=[20, 50, 100]))


@pytest.mark.slow
def test_event_and_closed_form_of_the_flow(flow_runs):
    ds = flow_runs.sel(kind="gaussian", symmetric=0.0, d=[200.0], stop=[0.1])
    assert bool(ds.stopped.all()) and passed(claims.judge_lower, ds)
    assert not passed(claims.judge_lower, distorted(ds, "end", 1.4))
    assert not passed(claims.judge_lower, ds.assign(measured_end=ds.measured_end + 0.5))
    assert not passed(claims.judge_lower, flow_runs.sel(kind="gaussian", symmetric=1.0, d=[200.0], stop=[0.1]))
    ortho = flow_runs.sel(kind="orthonormal", symmetric=0.0, stop=0.0)
    assert passed(claims.judge_ortho, ortho.sel(d=[200]))
    assert not passed(claims.judge_ortho, ortho.sel(d=[15]))
    assert not passed(claims.judge_ortho, claims.both_fall(ortho.sel(d=[200])))
    assert not passed(claims.judge_ortho, distorted(ortho.sel(d=[200]), "forward", 1.1))


@pytest.mark.slow
def test_figures_show_the_largest_sizes(flow_runs):
    ds = flow_runs.sel(kind="gaussian", symmetric=0.0, d=[15.0, 200.0], stop=[0.1])
    small, large = ds.assign_coords(pairs=5), (2 * ds).assign_coords(pairs=10)
    both = xr.concat([small, large], "pairs", coords="minimal", join="exact")
    xr.testing.assert_equal(claims.most_tokens(both).measured_end, large.measured_end)
    for name in ("bil_ratio", "bil_lower"):
        claim = next(c for c in claims.CLAIMS if c.id == f"rev.{name}")
        assert plotting.render(claim.plot, ds if name == "bil_lower" else ds.isel(stop=0)).startswith("<svg")
