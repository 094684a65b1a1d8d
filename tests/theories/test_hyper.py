"""The Boolean hypercube: losses and codes against direct computations, and judges on made-up numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.hyper import drawings, model, tie_codes
from jaxdyn.theories.hyper.spectral import Spectral, loss
from jaxdyn.theories.hyper.table_losses import Constants, trial
from jaxdyn.theories.hyper.tie_codes import Codes
from tests.theories.galore.helpers import passed

# The contrastive loss and the probe against direct computations.


def test_loss_against_loops():
    z = np.random.default_rng(0).normal(size=(2, 5, 3))
    z /= np.linalg.norm(z, axis=-1, keepdims=True)
    flat, total = z.reshape(10, 3), 0.0
    for i in range(10):
        others = [np.exp(flat[i] @ flat[j] / 0.3) for j in range(10) if j != i]
        total += np.log(sum(others)) - flat[i] @ flat[(i + 5) % 10] / 0.3
    np.testing.assert_allclose(jax.jit(model.nt_xent)(z.astype(np.float32), 0.3), total / 10, rtol=1e-5)


def test_encoders_share_parameters_and_masks():
    params = jax.device_get(jax.jit(lambda key: model.init(key, 6, 7, 4))(jax.random.key(1)))
    x = np.random.default_rng(2).normal(size=(9, 6)).astype(np.float32)
    encode = jax.jit(model.encode)
    linear, mlp = (np.asarray(encode(params, x, flag, 3)) for flag in (False, True))
    np.testing.assert_allclose(linear[:, :3], (x @ params.linear)[:, :3], rtol=1e-6)
    hidden = np.maximum(np.asarray(x @ params.inner + params.bias), 0)
    np.testing.assert_allclose(mlp[:, :3], (hidden @ params.outer + params.shift)[:, :3], rtol=1e-4, atol=1e-6)
    assert not linear[:, 3:].any() and not mlp[:, 3:].any()
    np.testing.assert_allclose(np.linalg.norm(jax.jit(model.on_sphere)(mlp), axis=-1), 1, rtol=1e-5)


def test_probe_is_the_minimum():
    with jax.enable_x64(True):
        z = jax.random.normal(jax.random.key(3), (200, 3), jnp.float64)
        y = z[:, 0] + 0.5 * jax.random.normal(jax.random.key(4), (200,), jnp.float64) > 0.2
        w = np.asarray(model.probe(z, y))
    x, sign = np.column_stack([z, np.ones(200)]), np.where(y, 1, -1)

    def loss(w):
        return np.mean(np.logaddexp(0, -sign * (x @ w))) + model.RIDGE / 2 * (w[:3] @ w[:3] + 1e-3 * w[3] ** 2)

    best = scipy.optimize.minimize(loss, np.zeros(4), tol=1e-12).x
    np.testing.assert_allclose(w, best, atol=1e-4)


def test_accuracy_of_a_linear_task():
    rng, accuracy = np.random.default_rng(5), jax.jit(model.accuracy)
    z = rng.normal(size=(400, 4)).astype(np.float32)
    y = (z[:, :2].sum(-1) > 0)[None]
    assert float(accuracy(z[:200], y[:, :200], z[200:], y[:, 200:])[0]) > 0.95
    noise = rng.random((1, 400)) < 0.5
    assert 0.3 < float(accuracy(z[:200], noise[:, :200], z[200:], noise[:, 200:])[0]) < 0.7


# The figure of trained encoders has a line for each of them.


def test_accuracy_against_loss_for_each_encoder():
    dims, shape = ("encoder", "seed", "step"), (2, 3, 4)
    curve = (dims, np.random.default_rng(0).random(shape))
    ends = (dims[:2], np.ones(shape[:2]))
    ds = xr.Dataset(
        {"measured_loss": curve, "measured_accuracy": curve, "predicted_final": ends, "predicted_least": ends, "status": ends},
        {"encoder": ["linear", "mlp"], "seed": range(3)},
    )
    fig = Figure()
    drawings.plot(ds, fig)
    assert [line.get_label() for line in fig.axes[0].get_lines()][:2] == ["linear", "mlp"]


# The spectral loss against its expectation over views.


def test_loss_is_the_expectation_over_views():
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (200_000, 3))
    views = [np.concatenate([x[:, :1], x[:, 1:] * (1 - rng.random((len(x), 2)))], -1) for _ in range(2)]
    w = rng.normal(size=(2, 3)) / 2
    z, other = views[0] @ w.T, np.roll(views[1], 1, 0) @ w.T
    direct = -2 * np.mean(np.sum(z * (views[1] @ w.T), -1)) + np.mean(np.sum(z * other, -1) ** 2)
    value = loss(jnp.asarray(w), jnp.array([1, 0.25, 0.25]), jnp.array([1, 1 / 3, 1 / 3]))
    assert float(value) == pytest.approx(direct, abs=0.03)  # 5 standard errors of 200000 products


@pytest.mark.parametrize("wrong", [{"relevant": 9.0}, {"mean": 0.9}])
def test_wrong_spectral_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Spectral(**wrong)


# Losses of the published table: closed forms in scipy.


def moment_loss(moment):
    return np.log(1022 * moment + np.exp(2)) - 2


def test_losses_are_the_closed_forms():
    ds = jd.sweep(trial, jd.grid(Constants), 1).squeeze()
    words = 1024
    simplex = (np.exp(2) + (words - 1) * np.exp(-2 / (words - 1))) / words
    sphere = scipy.special.gamma(10) * scipy.special.iv(9, 2.0)  # (2T)^(d/2-1) is 1
    for name, moment in (("linear", np.cosh(0.2) ** 10), ("codes", simplex), ("mlp", sphere)):
        np.testing.assert_allclose(float(ds[f"predicted_{name}"]), moment_loss(moment), rtol=1e-9)
    assert (float(ds.measured_linear), float(ds.measured_codes), float(ds.useless)) == (5.134, 4.939, 4.939)
    assert (float(ds.measured_mlp), float(ds.decayed)) == (5.039, 5.040)


# Codes that are written down, and their judge on made-up numbers.


def test_blocks():
    x = jnp.array([[1.0, -1.0, 0.5, -0.2, 0.9]])
    np.testing.assert_allclose(tie_codes.read(x, jnp.float32(2), jnp.float32(2)), [[0, 0, 0.5**0.5, -(0.5**0.5), 0]], rtol=1e-6)
    np.testing.assert_allclose(tie_codes.exchanged(x, jnp.float32(2)), [[0.5, -0.2, 1.0, -1.0, 0.9]])


@pytest.mark.parametrize("wrong", [{"first": 11.0}, {"inputs": 19}])
def test_wrong_settings_of_tie_codes_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Codes(**wrong)


def test_ties():
    rng = np.random.default_rng(0)
    tie = 5.13 + 0.001 * rng.normal(size=(8, 4))
    ds = {"predicted_tie": (("seed", "part"), tie), "measured_tie": (("seed", "part"), tie)}
    for name, value, noise in (("mean", 5.13, 1e-4), ("other", 5.13, 1e-4), ("relevant", 0.998, 1e-4), ("irrelevant", 0.5, 0.01)):
        ds[f"measured_{name}"] = ("seed", value + noise * rng.normal(size=8))
    ds = xr.Dataset(ds | {"predicted_mean": ("seed", np.full(8, 5.13))})
    assert passed(tie_codes.judge(ds)) == [True] * 5
    assert passed(tie_codes.judge(tie_codes.EXCHANGED(ds))) == [True] * 3 + [False] * 2
    assert passed(tie_codes.judge(ds.assign(measured_other=ds.measured_other + 0.1)))[1] is False
