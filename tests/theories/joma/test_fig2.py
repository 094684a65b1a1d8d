"""The experiment of JoMA's Figure 2 against an independent run in NumPy, and its judges on made-up data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.claims import fig2


def test_class_data_is_the_recipe(x64):
    uniform = np.random.default_rng(0).random((20, 20))
    want = uniform / 2
    assert np.allclose(fig2.class_data(jnp.asarray(uniform), 1), want / want.sum(1, keepdims=True))
    for i in range(20):
        for token in range(10):
            want[i, token] = np.exp(-((token - 10 * i / 20) ** 2) / 30)
    assert np.allclose(fig2.class_data(jnp.asarray(uniform), 0), want / want.sum(1, keepdims=True))


def numpy_run(x, w, z, tau, lr, ratio, steps):
    """Full-batch descent written from the formulas; returns logits, squares, and the moving estimate at every step."""
    m = x.shape[1]
    u = np.eye(len(w))[m]
    z0, v0, moved = z.copy(), w[:m].copy(), np.zeros(m)
    zs, squares, moving = [z], [(v0**2).sum(1)], [z]
    for _ in range(steps):
        e = x * np.exp(z / tau)
        b = e / e.sum(1, keepdims=True)
        f = np.concatenate([b, np.zeros((len(b), len(w) - m))], 1) + u
        g = (np.eye(len(x)) - scipy.special.softmax(f @ w, 1)) / len(x)
        pull = g @ w[:m].T
        old = (w[:m] ** 2).sum()
        z = z + lr * ratio / tau * (b * pull - b * (b * pull).sum(1, keepdims=True)).sum(0)
        w = w + lr * f.T @ g
        moved = moved + b.mean(0) * ((w[:m] ** 2).sum() - old)
        zs.append(z)
        squares.append((w[:m] ** 2).sum(1))
        moving.append(z0 + ratio / (2 * tau) * (squares[-1] - squares[0] - moved))
    return np.array(zs), np.array(squares), np.array(moving)


@pytest.fixture(scope="module")
def short():
    """Forty steps from a start that is larger than the paper's, so that all terms matter; every step is recorded."""
    grid = jd.grid(fig2.Classes, data=["gaussian", "random"], optimizer=["gd", "adam"], init=0.5, lr=0.5, ratio=2.0, every=1.0)
    return jd.sweep(fig2.fig2_trial, grid, seeds=2)


@pytest.mark.parametrize("kind", ["gaussian", "random"])
def test_training_is_that_of_an_independent_run(short, kind):
    ds = short.sel(data=kind, optimizer="gd", seed=1)
    with jax.enable_x64(True):
        s = fig2.Classes(data=jnp.int32(["gaussian", "random"].index(kind)), init=jnp.float64(0.5))
        params, _, batch = fig2.build(s, jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), 1))
    x, w, z = (np.asarray(a) for a in (batch.x, params.w, params.z[0]))
    zs, squares, moving = numpy_run(x, w, z, 0.5, 0.5, 2.0, fig2.SAMPLES)
    assert np.allclose(ds.measured_z, zs, atol=1e-12)
    assert np.allclose(ds.square_term, 2 * squares, atol=1e-12)
    assert np.allclose(ds.predicted_z.sel(form="moving"), moving, atol=1e-12)
    constant = z + 2 * ((squares - squares[0]) - x.mean(0) * (squares - squares[0]).sum(1, keepdims=True))
    assert np.allclose(ds.predicted_z.sel(form="constant"), constant, atol=1e-12)
    assert np.abs(zs[-1] - z).max() > 0.1


def test_exact_bookkeeping_is_exact_for_descent_only(short):
    error = fig2.relative(short.sel(form="exact")).isel(record=-1)
    assert float(error.sel(optimizer="gd").max()) < 1e-13
    assert float(error.sel(optimizer="adam").min()) > 1e-3


def made_up(scale=1.2, tilt=0.0):
    """Logits that grow with time, an estimate that is ``scale`` times as large, and a part that does not belong there."""
    rng = np.random.default_rng(0)
    token = rng.normal(size=20)
    other = rng.normal(size=20)
    time = np.linspace(0, 1, fig2.SAMPLES + 1)
    z = time[:, None] * token
    estimate = scale * time[:, None] * (token + tilt * other)
    dims = ("data", "seed", "record", "token")
    wide = lambda a: (dims, np.broadcast_to(a, (2, 3, *a.shape)).copy())  # noqa: E731
    drift = (dims[:3], np.broadcast_to(0.1 * time, (2, 3, len(time))).copy())
    coords = {"data": ["gaussian", "random"], "record": range(fig2.SAMPLES + 1)}
    return xr.Dataset({"measured_z": wide(z), "predicted_z": wide(estimate), "drift": drift}, coords=coords)


@pytest.mark.parametrize(
    ("scale", "tilt", "verdicts"),
    [
        (1.2, 0.0, [True] * 4),
        (1.35, 0.0, [True, False, True, True]),
        (1.05, 0.0, [True, False, True, True]),
        (1.2, 0.6, 4 * [False]),
    ],
)
def test_judge_of_fig2(scale, tilt, verdicts):
    assert [c.passed for c in fig2.judge_fig2(made_up(scale, tilt))] == verdicts


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.1, True), (1.35, False), (0.7, False)])
def test_judges_of_size(scale, passes):
    ds = made_up(scale)
    assert all(c.passed for c in fig2.judge_early(ds)) == passes
    assert all(c.passed for c in fig2.judge_size(ds)) == passes


def test_early_phase(x64):
    """It ends where the mean attention has moved by 5%, holds the first record in any case, and never the start."""
    ds = made_up()
    assert fig2.early(ds).isel(data=0, seed=0).values.nonzero()[0].tolist() == list(range(1, 21))
    late = ds.assign(drift=ds.drift + 1)
    assert fig2.early(late).isel(data=0, seed=0).values.nonzero()[0].tolist() == [1]
    assert float(fig2.last(ds.record * (ds.drift >= 0), fig2.early(ds)).max()) == 20


def test_correlation_is_blind_to_size_and_offset():
    ds = made_up(3.0)
    nc = fig2.correlation(ds.measured_z, ds.predicted_z + 5).isel(record=-1)
    assert np.allclose(nc, 1)
    a, b = ds.measured_z.isel(data=0, seed=0, record=3), made_up(1.0, 0.7).predicted_z.isel(data=0, seed=0, record=3)
    assert np.isclose(fig2.correlation(a, b), np.corrcoef(a, b)[0, 1])


def test_breaches_start_at_the_logits(short):
    ds = short.sel(form="constant", optimizer="gd")
    for breach in (fig2.second_term_alone, fig2.permuted_rows, fig2.scaled(1.5)):
        wrong = breach(ds)
        assert np.allclose(wrong.predicted_z.isel(record=0), ds.measured_z.isel(record=0))
        assert float(fig2.relative(wrong).isel(record=-1).min()) > 0.2
    assert np.allclose(fig2.constant_attention(short.sel(form="moving")).predicted_z, short.predicted_z.sel(form="constant"))


@pytest.mark.parametrize("fields", [{"tokens": 9}, {"dim": 20}])
def test_settings_refuse_what_the_arrays_cannot_hold(fields):
    with pytest.raises(jd.UsageError, match="is not allowed"):
        fig2.Classes(**fields)
