"""The Boolean hypercube: losses, codes and training against direct computations, and judges on made-up numbers."""

import itertools

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
from jaxdyn.theories.hyper import drawings, dynamics, linear_mlp, model, tie_table_losses
from jaxdyn.theories.hyper.linear_mlp import Contrastive
from jaxdyn.theories.hyper.linear_mlp import trial as training_trial
from jaxdyn.theories.hyper.spectral import Spectral, loss
from jaxdyn.theories.hyper.tie_table_losses import Codes, Constants, table_trial
from tests.theories.galore.helpers import passed
from tests.theories.joma.helpers import refutes

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
    ds = jd.sweep(table_trial, jd.grid(Constants), 1).squeeze()
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
    np.testing.assert_allclose(
        tie_table_losses.read(x, jnp.float32(2), jnp.float32(2)), [[0, 0, 0.5**0.5, -(0.5**0.5), 0]], rtol=1e-6
    )
    np.testing.assert_allclose(tie_table_losses.exchanged(x, jnp.float32(2)), [[0.5, -0.2, 1.0, -1.0, 0.9]])


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
    assert passed(tie_table_losses.judge_tie(ds)) == [True] * 5
    assert passed(tie_table_losses.judge_tie(tie_table_losses.EXCHANGED(ds))) == [True] * 3 + [False] * 2
    assert passed(tie_table_losses.judge_tie(ds.assign(measured_other=ds.measured_other + 0.1)))[1] is False


# Closed forms of losses against Bessel functions, sums over codewords, and the values of the theory.


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("dims", [2, 5, 20, 100])
def test_sphere_against_bessel_functions(dims, temperature):
    order, x = dims / 2 - 1, 1 / temperature
    log = scipy.special.gammaln(dims / 2) + order * np.log(2 * temperature) + np.log(scipy.special.ive(order, x)) + x
    np.testing.assert_allclose(dynamics.sphere_moment(dims, temperature), np.exp(log), rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_moments_against_sums_over_codewords():
    words = np.array(list(itertools.product([-1, 1], repeat=4))) / 2
    similar = np.exp((words @ words.T) / 0.5)
    np.testing.assert_allclose(dynamics.bit_moment(4.0, 0.5), similar.mean(), rtol=1e-12)
    np.testing.assert_allclose(dynamics.bit_variance(4.0, 0.5), similar.var(), rtol=1e-12)
    eye = np.eye(6)
    np.testing.assert_allclose(dynamics.one_hot_moment(6.0, 0.5), np.exp(2 * eye).mean(), rtol=1e-12)
    simplex = (eye - 1 / 6) / np.sqrt(5 / 6)
    np.testing.assert_allclose(dynamics.simplex_moment(6.0, 0.5), np.exp(2 * simplex @ simplex.T).mean(), rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("negatives", "temperature"), [(6.0, 0.5), (60.0, 0.25)])
def test_jensen_against_a_spread_of_the_sum(negatives, temperature):
    moment, variance = 2.5, 3.0
    centre = negatives * moment + np.exp(1 / temperature)
    spread = 1e-3 * np.sqrt(2 * negatives * variance)  # every similarity counts twice; small, so that higher orders vanish
    below = np.log(centre) - np.mean(np.log(centre + spread * np.array([-1, 1])))
    np.testing.assert_allclose(dynamics.jensen(negatives, moment, variance, temperature), below / 1e-6, rtol=1e-4)


@pytest.mark.usefixtures("x64")
def test_values_of_the_paper_s_scale():
    def loss(c):
        return float(dynamics.loss(1022.0, c, 0.5))

    assert loss(dynamics.bit_moment(10.0, 0.5)) == pytest.approx(5.1341, abs=5e-5)
    below = dynamics.jensen(1022.0, dynamics.bit_moment(10.0, 0.5), dynamics.bit_variance(10.0, 0.5), 0.5)
    assert loss(dynamics.bit_moment(10.0, 0.5)) - float(below) == pytest.approx(5.13366, abs=1e-5)
    found = [round(loss(dynamics.sphere_moment(d, 0.5)), 4) for d in (10, 16, 20, 32, 50, 100)]
    assert found == [5.1322, 5.06, 5.0356, 4.9987, 4.9764, 4.9566]
    assert [round(loss(f(1024.0, 0.5)), 4) for f in (dynamics.one_hot_moment, dynamics.simplex_moment)] == [4.9429, 4.941]
    assert loss(jnp.float64(1)) == pytest.approx(4.9367, abs=5e-5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("bits", [3, 5])
@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_the_sign_of_a_little_irrelevant_weight(bits, temperature):
    e, tau = 1e-3, (np.arange(40) + 0.5) / 40
    words = np.array(list(itertools.product([-1, 1], repeat=bits)))
    s = words @ words[0] / bits  # similarities of independent points
    first, second = np.meshgrid(tau, tau)
    size = np.sqrt((1 + e * first**2) * (1 + e * second**2))
    u = np.array([-1.0, 1.0])[:, None, None, None]  # one irrelevant bit against another
    negative = np.exp((s[:, None, None] + e * u * first * second) / size / temperature).mean()
    positive = (1 + e * first * second) / size / temperature

    def loss(negative, positive):
        return np.mean(np.log(62 * negative + np.exp(positive)) - positive)

    change = loss(negative, positive) - loss(np.exp(s / temperature).mean(), np.array(1 / temperature))
    assert np.sign(change) == -np.sign(float(dynamics.critical(bits, temperature)))


# The minimum against a search over random matrices' descent, the logistic against its equation.


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("encoder", "least"), [(2, -2.0), (4, -3 - 0.75**2), (8, -3 - 3 * 0.75**2)])
def test_minimum_against_descent(encoder, least):
    with jax.enable_x64(True):
        plus, both = (np.asarray(x) for x in dynamics.correlations(6, 3, 0.5, 1 / 3))
        assert float(dynamics.minimum(6, 3.0, encoder, 0.5, 1 / 3)) == pytest.approx(least, abs=1e-12)

    def loss(flat):
        w = flat.reshape(encoder, 6)
        return -2 * np.sum(w * w * plus) + np.sum(((w * both) @ w.T) ** 2)

    start = np.random.default_rng(0).normal(size=encoder * 6)
    assert scipy.optimize.minimize(loss, start, tol=1e-12).fun == pytest.approx(least, abs=1e-6)


@pytest.mark.usefixtures("x64")
def test_logistic_obeys_its_equation():
    with jax.enable_x64(True):
        plus, both, start = jnp.array([1.0, 0.25]), jnp.array([1.0, 1 / 3]), jnp.array([0.01, 0.02])
        ts = jnp.linspace(0.0, 2.0, 2001)
        p = np.asarray(dynamics.logistic(start, plus, both, ts))
        slope = 8 * (plus * p - both**2 * p**2)
    np.testing.assert_allclose(p[0], start)
    np.testing.assert_allclose((p[2:] - p[:-2]) / 2e-3, slope[1:-1], atol=3e-4)  # third derivative times h^2/6


SMALL = {"inputs": 8, "width": 6, "dim": 6.0, "relevant": 3.0, "hidden": 16, "batch": 16, "examples": 200, "records": 2}


@pytest.mark.slow
def test_short_runs_learn_the_relevant_bits():
    ds = jd.sweep(training_trial, jd.grid(Contrastive, encoder=["linear", "mlp"], every=100.0, **SMALL), 2)
    assert (ds.measured_loss.isel(step=-1) < ds.measured_loss.isel(step=0)).all()
    assert float(ds.measured_accuracy.isel(step=-1).min()) > 0.9 and (ds.irrelevant <= 1).all()
    np.testing.assert_allclose(ds.measured_final, ds.measured_loss.isel(step=-1), rtol=1e-6)
    assert (ds.predicted_least < ds.predicted_final).all()


@pytest.mark.slow
def test_outputs_that_are_masked_and_an_optimizer_that_decays():
    ds = jd.sweep(
        training_trial, jd.grid(Contrastive, dim=[1.0, 6.0], every=50.0, **{k: v for k, v in SMALL.items() if k != "dim"}), 1
    )
    ends = ds.measured_loss.isel(step=-1, seed=0)
    assert float(ends.sel(dim=1.0)) > float(ends.sel(dim=6.0)) + 0.1
    decay = jd.sweep(
        training_trial, jd.grid(Contrastive, optimizer="sgd", decoupled=[0.0, 5.0], every=50.0, encoder="mlp", **SMALL), 1
    )
    ends = decay.measured_loss.isel(step=-1, seed=0)
    assert float(ends.sel(decoupled=0.0)) != float(ends.sel(decoupled=5.0))


@pytest.mark.parametrize("wrong", [{"relevant": 99.0}, {"dim": 33.0}, {"normalised": 0.5}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Contrastive(**wrong)


CLAIMS = {c.id: c for c in linear_mlp.CLAIMS}


def rivals_fail(claim, ds):
    """Every rival is rejected by the claim's judge."""
    rivals = CLAIMS[claim].rivals
    assert rivals and all(refutes(CLAIMS[claim].judge, rival, ds) for rival in rivals.values())


ENDS = {"loss": ((2.69, 2.582, 2.581), (3.4, 2.462, 2.448)), "accuracy": ((0.88, 0.999, 0.999), (0.89, 0.99, 0.87))}


def made():
    """Eight runs of both encoders at three records."""
    rng = np.random.default_rng(0)

    def curve(rows):
        return ("encoder", "seed", "step"), np.array(rows)[:, None, :] + 1e-3 * rng.normal(size=(2, 8, 3))

    ds = {f"measured_{name}": curve(rows) for name, rows in ENDS.items()}
    ds["irrelevant"] = curve(((0.5, 0.4, 0.4), (0.5, 0.005, 0.002)))
    ds["error"] = ("encoder", "seed", "step"), np.full((2, 8, 3), 0.004)
    ds["status"] = ("encoder", "seed"), np.zeros((2, 8))
    ds["predicted_least"] = ("encoder", "seed"), np.full((2, 8), 2.417)
    ds = xr.Dataset(ds, coords={"encoder": ["linear", "mlp"]})
    end = ds.measured_loss.isel(step=-1)
    return ds.assign(measured_final=end, measured_least=end, predicted_final=xr.full_like(end, 2.5812))


def test_linear():
    ds = made().sel(encoder="linear")
    assert passed(linear_mlp.judge_linear(ds)) == [True, True]
    rivals_fail("hyper.table_linear", ds)
    assert passed(linear_mlp.judge_linear(made().sel(encoder="mlp"))) == [False, False]


def test_mlp_against_linear():
    ds = made()
    assert passed(linear_mlp.judge_mlp(ds)) == passed(linear_mlp.judge_share(ds)) == [True, True]
    rivals_fail("hyper.mlp_adam", ds)
    rivals_fail("hyper.mlp_relevant", ds)
    swapped = ds.roll(encoder=1, roll_coords=False)
    assert passed(linear_mlp.judge_mlp(swapped)) == passed(linear_mlp.judge_share(swapped)) == [False, False]


def test_late_fall():
    ds = made().sel(encoder="mlp")
    assert passed(linear_mlp.judge_late(ds)) == [True, True]
    assert passed(linear_mlp.judge_late(made().sel(encoder="linear")))[0] is False
    rivals_fail("hyper.mlp_late", ds)
    shown = linear_mlp.early(ds)
    assert passed(linear_mlp.judge_late(shown)) == [False, False]


def test_bound():
    ds = made().sel(encoder="mlp")
    assert passed(linear_mlp.judge_bound(ds)) == [True, True]
    assert passed(linear_mlp.judge_bound(ds.assign(predicted_least=ds.predicted_final))) == [False, False]
    rivals_fail("hyper.sphere_bound", ds)
    noisy = ds.assign(error=10 * ds.error)
    assert passed(linear_mlp.judge_bound(noisy)) == [None, True]  # batches that do not tell one run from the bound
    spread = ds.measured_least + xr.DataArray(np.linspace(-0.1, 0.1, 8), dims="seed")
    assert passed(linear_mlp.judge_bound(ds.assign(measured_least=spread))) == [False, None]


def test_weight_decay():
    ds = made().sel(encoder="mlp", drop=True)
    gain = xr.DataArray([0.0, 0.0, 0.12], dims="decoupled", coords={"decoupled": [0.0, 0.1, 1.0]})
    gain = gain * xr.DataArray([0.0, 1.0, 1.0], dims="step")
    ds = ds.assign(measured_accuracy=ds.measured_accuracy + gain, measured_loss=ds.measured_loss + 0.3 * gain)
    end = ds.measured_loss.isel(step=-1)
    ds = ds.assign(measured_final=end, measured_least=end)
    readings = {reading.name: reading.value for reading in linear_mlp.judge_decay(ds)}
    assert readings == pytest.approx({linear_mlp.LITTLE: 0.0, linear_mlp.MUCH: 0.12, linear_mlp.RISE: 0.036}, abs=1e-9)


def test_threshold():
    runs = made().isel(encoder=[0, 0, 1, 1]).rename(encoder="temperature").assign_coords(temperature=list(linear_mlp.TEMPERATURES))
    reads = xr.DataArray([1.0, 1.0, 0.0, 0.0], dims="temperature", coords={"temperature": runs.temperature})
    ds = runs.assign(predicted_reads=reads.broadcast_like(runs.status), measured_reads=runs.irrelevant.isel(step=-1))
    assert passed(linear_mlp.judge_threshold(ds)) == [True] * 4
    rivals_fail("hyper.linear_threshold", ds)
