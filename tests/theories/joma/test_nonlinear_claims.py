"""Networks, trials and judges of JoMA's nonlinear claims: against NumPy, and against what the judges must reject."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.claims import bounce, thm3, thm3_path, thm4
from jaxdyn.theories.joma.dynamics import nonlinear as nl

CLAIMS = {c.id: c for m in (bounce, thm3, thm3_path, thm4) for c in m.CLAIMS}


def inside(setting):
    """The setting as a trial sees it: swept numbers as float64 arrays, names as indices."""
    cls = type(setting)
    leaves = {n: getattr(setting, n) for n in cls.swept_fields}
    as_arrays = {n: jnp.int32(cls.code_names[n].index(v)) if n in cls.code_names else jnp.float64(v) for n, v in leaves.items()}
    return jax.tree.unflatten(jax.tree.structure(setting), [as_arrays[n] for n in cls.swept_fields])


@jax.jit
def drawn(s):
    """A mixture of two components over six tokens, samples of it, and the start."""
    one = thm3.draw(jax.random.key(0), 6, 2, 1.0, 2.0)
    return one, *thm3.sample(jax.random.key(1), one, s, 20_000), thm3.start_weights(one)


def passed(judge, ds):
    with np.errstate(all="ignore"):
        return all(c.passed for c in judge(ds))


def distorted(ds, name, factor):
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


@pytest.fixture(scope="module")
def field_runs():
    grid = jd.grid(thm3.Mixture, activation=["relu", "tanh"], noise=["gauss"], tokens=5, components=2, samples=4000)
    return jd.sweep(thm3.field_trial, grid, 4)


@pytest.fixture(scope="module")
def path_runs():
    """Paths as the judge meets them: first-order step error, Monte Carlo error of the stated size, one activation."""
    rng = np.random.default_rng(0)
    eta, runs, path = np.array([0.04, 0.02, 0.01]), ("activation", "eta", "seed"), ("time", "coordinate")
    predicted, drift, noise = rng.normal(size=(3, 1, 1, 6, 5, 4))
    step = eta[None, :, None, None, None]
    measured = predicted + 3e-3 * noise + 0.2 * step * drift + 0.1 * step**2
    shape = measured.shape
    return xr.Dataset(
        {
            "predicted_path": ((*runs, *path), np.broadcast_to(predicted, shape)),
            "measured_path": ((*runs, *path), measured),
            "error": ((*runs, *path), np.full(shape, 3e-3)),
            "without_xi": ((*runs, *path), np.broadcast_to(predicted + 0.1 * drift, shape)),
            "start": ((*runs, "coordinate"), np.ones((*shape[:3], 4))),
            "replicates": (runs, np.full(shape[:3], 16.0)),
            "start_cosine": (runs, np.full(shape[:3], 0.5)),
            "measured_cosine": (runs, np.full(shape[:3], 0.8)),
        },
        {"activation": ["tanh"], "eta": eta},
    )


@pytest.fixture(scope="module")
def critical_runs():
    return jd.sweep(thm4.trial, jd.grid(thm4.Critical, attention=list(thm4.ATTENTIONS), tokens=3), 2)


@pytest.fixture(scope="module")
def bounce_runs():
    grid = jd.grid(bounce.Bounce, draw=["fig4"], logits=["law", "trained"], drive=["critical", "linear"], eta=[0.02, 0.01, 0.005])
    return jd.sweep(bounce.trial, grid, 1).sel(form="derived")


def test_gradient_of_one_sample_is_the_formula(x64):
    s = inside(thm3.Mixture(activation="relu"))
    one, x, g, w = drawn(s)
    x, g = x[:, :20], g[:, :20]
    np.testing.assert_allclose(thm3.coordinates(one, w), np.append(one.v, one.xi), atol=1e-13)
    each = jax.jit(jax.vmap(jax.grad(thm3.utility), (None, 0, 0, None)))
    gradient = each(w, thm3.features(one, x[0]), g[0], s.activation)
    pre = np.asarray(x[0]) @ np.asarray(one.v) + float(one.xi)
    expected = (np.asarray(g[0]) * (pre > 0))[:, None] * np.concatenate([x[0], np.ones((20, 1))], 1)
    np.testing.assert_allclose(-thm3.coordinates(one, gradient), expected, atol=1e-12)


@pytest.mark.parametrize("noise", nl.NOISES)
def test_samples_have_the_stated_moments(x64, noise):
    s = inside(thm3.Mixture(noise=noise, spread=0.7, anisotropy=0.5, g_slope=0.3))
    one, x, g, _ = drawn(s)
    np.testing.assert_allclose(np.mean(x, 1), one.centres, atol=0.03)
    expected = 0.49 * (1 + 0.5 * np.array([1, -1] * 3))
    np.testing.assert_allclose(np.var(x, 1), np.stack([expected] * 2), rtol=0.06)
    np.testing.assert_allclose(np.mean(g, 1), one.g, atol=0.01)
    np.testing.assert_allclose(np.std(g, 1), 0.3, rtol=0.03)


def test_field_judge(field_runs):
    ds = field_runs.sel(form="derived")
    assert passed(thm3.judge_field, ds)
    assert not passed(thm3.judge_field, distorted(ds, "rate", 1.1))
    assert not passed(thm3.judge_field, distorted(ds, "size", 0.9))
    assert not passed(thm3.judge_field, thm3.drop_xi("rate")(ds))
    assert not passed(thm3.judge_field, field_runs.sel(form="printed"))


def test_descent_is_plain_gradient_descent(x64):
    s = inside(thm3_path.Path(activation="tanh", eta=0.1, horizon=1.6))
    one, x, g, w = drawn(inside(thm3.Mixture()))
    x, g = x[:, :10], g[:, :10]
    f = np.asarray(thm3.features(one, x))
    path = jax.jit(thm3_path._descend)(s, one, f, g)
    for _ in range(16):
        slope = 1 - np.tanh(f @ w) ** 2
        w = w + 0.1 * np.einsum("c,cn,cnd->d", one.share / 10, np.asarray(g) * slope, f)
    np.testing.assert_allclose(path[-1], w, atol=1e-12)


def test_path_judge(path_runs):
    assert passed(thm3_path.judge_path, path_runs)
    assert not passed(thm3_path.judge_path, distorted(path_runs, "path", 1.1))
    assert not passed(thm3_path.judge_path, distorted(path_runs, "path", 0.9))
    assert not passed(thm3_path.judge_path, thm3.drop_xi("path")(path_runs))
    second_order = path_runs.assign(measured_path=path_runs.predicted_path + path_runs.eta**2 * path_runs.without_xi)
    assert not passed(thm3_path.judge_path, second_order)
    with pytest.raises(jd.Inconclusive, match="three step sizes"):
        thm3_path.judge_path(path_runs.isel(eta=slice(2)))
    with pytest.raises(jd.Inconclusive, match="half"):
        thm3_path.judge_path(path_runs.assign_coords(eta=[0.04, 0.02, 0.012]))


def test_gradients_under_every_attention(x64):
    rng = np.random.default_rng(0)
    v, z, g = rng.normal(size=(3, 4))
    total = np.exp(z).sum()
    expected = {
        "exp": (np.exp(z), g * v * np.exp(z)),
        "normalised": (np.exp(z) / total, g * v * np.exp(z) / total),
        "linear": (z, g * v),
        "none": (np.ones(4), np.zeros(4)),
    }
    gradients = jax.jit(thm4.gradients)
    for i, name in enumerate(thm4.ATTENTIONS):
        dv, dz = gradients(jnp.array(v), jnp.array(z), jnp.array(g), jnp.int32(i))
        np.testing.assert_allclose(dv, expected[name][0], rtol=1e-13)
        np.testing.assert_allclose(dz, expected[name][1], rtol=1e-13)


@pytest.mark.parametrize(
    ("judge", "attention", "names"),
    [
        (thm4.judge_thm4, "exp", ["clock", "speed"]),
        (thm4.judge_offset, "exp", ["bend"]),
        (thm4.judge_orbit, "normalised", ["orbit", "softmax_time"]),
        (thm4.judge_linear, "linear", ["linear_speed"]),
    ],
)
def test_critical_judges(critical_runs, judge, attention, names):
    ds = critical_runs.sel(attention=attention)
    assert int((ds.status != 0).sum()) == 0
    assert passed(judge, ds)
    for name in names:
        assert not passed(judge, distorted(ds, name, 1.1))
    assert not passed(judge, critical_runs.sel(attention="none"))


@pytest.mark.slow
def test_an_implicit_solver_gives_the_same_flow(x64):
    s = inside(thm4.Critical(tokens=3, mu_high=3.0, solver="kvaerno5"))
    out = jax.jit(thm4.plain_trial)(s, jax.random.key(0))
    np.testing.assert_allclose(out.measured["v"].value, out.predicted["v"].value, atol=1e-7)


def published_recursion(steps, eta=0.02, temperature=3.0):
    """The recursion behind Fig. 4, in NumPy: entropy at every step."""
    mu, v, h = np.array(bounce.FIG4_MU), np.full(10, 0.05), []
    for _ in range(steps):
        p = scipy.special.softmax(v**2 / temperature)
        h.append(-np.sum(p * np.log(p)))
        v = v + eta * (mu - v) * p
    return np.array(h)


def test_published_numbers(bounce_runs):
    h = published_recursion(5001)
    low, at, last = bounce.FIG4.values()
    assert abs(h.min() - low) < 5e-5 and h.argmin() == at and abs(h[4999] - last) < 5e-5
    ours = bounce_runs.sel(draw="fig4", logits="law", drive="critical", eta=0.02).isel(seed=0)
    np.testing.assert_allclose(ours.measured_entropy, h[:: bounce.PREDICTED], atol=1e-11)
    assert float(ours.lowest_at) == at


def test_bounce_judge(bounce_runs):
    ds = bounce_runs.sel(drive="critical")
    assert passed(bounce.judge, ds)
    assert not passed(bounce.judge, distorted(ds, "entropy", 1.1))
    assert not passed(bounce.judge, distorted(ds, "limit", 1.1))
    linear = bounce_runs.sel(drive="linear")
    assert not passed(bounce.judge, linear)
    h = linear.measured_entropy.isel(seed=0)
    assert float(h.diff("time").max()) < 1e-9 and float(h.isel(time=-1).max()) < 1e-6  # falls, never rises
    with pytest.raises(jd.Inconclusive, match="three step sizes"):
        bounce.judge(ds.isel(eta=slice(1)))


def test_equal_critical_values_do_not_bounce(x64):
    s = inside(bounce.Bounce(spread=0.0))

    @jax.jit
    def after_one_step(key):
        mu = bounce.place(s, key)
        v = jnp.full_like(mu, 0.05)
        return bounce.step((v, v * v / 3), mu, s.eta, s)

    _, z = after_one_step(jax.random.key(3))
    np.testing.assert_allclose(nl.entropy_of_logits(z), np.log(10), atol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: thm3.Mixture(samples=3), "at least 2 samples"),
        (lambda: thm3.Mixture(anisotropy=2.0), "anisotropy"),
        (lambda: thm3_path.Path(horizon=0.1), "horizon"),
        (lambda: thm3_path.Path(replicates=1), "replicates"),
        (lambda: thm4.Critical(start=0.6), "start < mu_low"),
        (lambda: thm4.Critical(tokens=1), "at least 2 tokens"),
        (lambda: thm3_path.Path(horizon=1.0, eta=0.05), "whole multiple"),
        (lambda: bounce.Bounce(eta=0.5), "whole multiple"),
        (lambda: bounce.Bounce(temperature=0.0), "temperature"),
    ],
)
def test_wrong_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("claim", ["joma.thm4", "joma.thm4_offset", "joma.thm4_linear", "joma.time_change"])
def test_critical_figures_draw(critical_runs, claim):
    assert _axes(CLAIMS[claim], critical_runs)


def test_other_figures_draw(field_runs, path_runs, bounce_runs):
    assert _axes(CLAIMS["joma.thm3"], field_runs.sel(form="derived"))
    assert _axes(CLAIMS["joma.thm3_path"], path_runs)
    assert _axes(CLAIMS["joma.critical_points"], path_runs.isel(eta=[0]))
    assert _axes(CLAIMS["joma.bounce"], bounce_runs.sel(drive="critical"))


def _axes(claim, ds: xr.Dataset) -> list:
    """The panels of a claim's figure that hold something."""
    from matplotlib.figure import Figure

    fig = Figure()
    claim.plot(ds, fig)
    return [ax for ax in fig.axes if ax.has_data()]
