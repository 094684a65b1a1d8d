"""The target, the sharpness by power iteration, the judge of the edge, and which runs count."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.judging.verdict import decide
from jaxdyn.theories.cal import eos_mlp, model
from tests.theories.cal.helpers import distorted, passed


@pytest.mark.slow
def test_tanh_network_and_its_sharpness(x64):
    sizes = (3, 4, 4, 1)
    params, v = (jax.jit(model.tanh_init, static_argnums=1)(jax.random.key(i), sizes) for i in (0, 2))
    x = jax.random.normal(jax.random.key(1), (6, 3), jnp.float64)
    y = eos_mlp.target(x)
    z = np.asarray(x)
    for w, b in zip(params.weights[:-1], params.biases[:-1], strict=True):
        z = np.tanh(z @ np.asarray(w).T + np.asarray(b))
    out = (z @ np.asarray(params.weights[-1]).T)[:, 0]
    np.testing.assert_allclose(jax.jit(model.tanh_apply)(params, x), out, rtol=1e-12)
    np.testing.assert_allclose(model.tanh_loss(params, x, y), 0.5 * np.mean((out - np.asarray(y)) ** 2), rtol=1e-12)

    flat, unflatten = jax.flatten_util.ravel_pytree(params)
    hessian = jax.jit(jax.hessian(lambda p: model.tanh_loss(unflatten(p), x, y)))(flat)
    _, top = jax.jit(eos_mlp.power_iteration, static_argnums=5)(params, v, x, y, 1.0, 500)
    assert float(top) == pytest.approx(float(np.linalg.eigvalsh(hessian)[-1]), rel=1e-6)


def test_missing_inputs_of_the_target_count_as_zero(x64):
    x = jnp.array([[0.3]])
    np.testing.assert_allclose(eos_mlp.target(x), 2 * (np.sin(0.6) + 1), rtol=1e-12)


EDGE = xr.DataArray([10.0, 20.0], dims="seed")


def runs(ratio=0.99, flow=2.0, before=1.0):
    sharpness = {"predicted_sharpness": EDGE, "measured_sharpness": EDGE * ratio, "before": EDGE * before, "flow": EDGE * flow}
    return xr.Dataset({**sharpness, "eta": 2 / EDGE, "assumed_flow_over_edge": EDGE * flow / EDGE, "status": 0 * EDGE.astype(int)})


def judged(ds):
    (claim,) = eos_mlp.CLAIMS
    twice = jd.scaled(predicted_sharpness=2.0)  # in place of runs at another step size
    return decide(dataclasses.replace(claim, controls={"edge at $4/\\eta$": twice}), ds, {})


def test_the_end_is_at_the_edge():
    assert passed(eos_mlp.judge(runs()))
    assert not passed(eos_mlp.judge(distorted(runs(), "sharpness", 1.2)))


def test_a_sharpness_that_still_moves_decides_nothing():
    decision = judged(runs(before=0.8))
    assert decision.verdict == "inconclusive" and "gate not met" in decision.message


def test_runs_whose_flow_stays_below_are_outside():
    below = runs(ratio=xr.DataArray([1.0, 0.5], dims="seed"), flow=xr.DataArray([2.0, 0.5], dims="seed"), before=EDGE / EDGE)
    below["before"] = below.measured_sharpness
    decision = judged(below)
    assert decision.outside == 1 and passed(decision.checks)
    assert judged(below.isel(seed=[1])).verdict == "inconclusive"


def test_the_last_quarter_is_a_whole_number_of_records():
    with pytest.raises(jd.UsageError, match="samples=7 is not allowed: samples is a multiple of 4"):
        eos_mlp.Network(samples=7)
