"""JoMA's chapter on nonlinear nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.dynamics.nonlinear import NOISES, entropy_of_logits
from jaxdyn.theories.joma.nonlinear import fig4_bounce, model, thm3, thm4, thm4_trained
from jaxdyn.theories.joma.nonlinear import model as net
from jaxdyn.theories.joma.nonlinear import thm3_path as trial
from jaxdyn.theories.joma.nonlinear.model import ATTENTIONS, Mixture, sample
from jaxdyn.theories.joma.nonlinear.thm4 import Critical
from jaxdyn.theories.joma.nonlinear.thm4 import trial as thm4_trial
from tests.theories.joma.helpers import distorted, inside, panels, refutes, upheld

# The node near a critical point: its gradients under each kind of attention.


def test_gradients_under_every_attention(x64):
    rng = np.random.default_rng(0)
    v, z, g = rng.normal(size=(3, 4))
    total = np.exp(z).sum()
    expected = {
        "exp": (np.exp(z), g * v * np.exp(z)),
        "normalised": (np.exp(z) / total, g * v * np.exp(z) / total),
        "linear": (z, g * v),
        "none": (np.ones(4), np.zeros(4)),
        "softmax": (np.exp(z) / total, np.exp(z) / total * (g * v - np.sum(g * v * np.exp(z)) / total)),
    }
    gradients = jax.jit(model.gradients)
    for name in model.ATTENTIONS:
        dv, dz = gradients(jnp.array(v), jnp.array(z), jnp.array(g), jd.Code.of(name, model.ATTENTIONS))
        np.testing.assert_allclose(dv, expected[name][0], rtol=1e-13)
        np.testing.assert_allclose(dz, expected[name][1], rtol=1e-13)


# Samples of the mixture of Theorem 3, and the gradient of its node against NumPy.


@jax.jit
def sampled(s):
    """A mixture of two components over six tokens, samples of it, and the start."""
    one = net.sample_instance(jax.random.key(0), 6, 2, 1.0, 2.0)
    return one, *model.sample(jax.random.key(1), one, s, 20_000), net.start_weights(one)


@pytest.mark.slow
def test_gradient_of_one_sample_is_the_formula(x64):
    s = inside(model.Mixture(activation="relu"))
    one, x, g, w = sampled(s)
    x, g = x[:, :20], g[:, :20]
    np.testing.assert_allclose(net.coordinates(one, w), np.append(one.v, one.xi), atol=1e-13)
    each = jax.jit(jax.vmap(jax.grad(net.utility), (None, 0, 0, None)))
    gradient = each(w, net.features(one, x[0]), g[0], s.activation)
    pre = np.asarray(x[0]) @ np.asarray(one.v) + float(one.xi)
    expected = (np.asarray(g[0]) * (pre > 0))[:, None] * np.concatenate([x[0], np.ones((20, 1))], 1)
    np.testing.assert_allclose(-net.coordinates(one, gradient), expected, atol=1e-12)


@pytest.mark.parametrize("noise", NOISES)
def test_samples_have_the_stated_moments(x64, noise):
    s = inside(model.Mixture(noise=noise, spread=0.7, anisotropy=0.5, g_slope=0.3))
    one, x, g, _ = sampled(s)
    np.testing.assert_allclose(np.mean(x, 1), one.centres, atol=0.03)
    expected = 0.49 * (1 + 0.5 * np.array([1, -1] * 3))
    np.testing.assert_allclose(np.var(x, 1), np.stack([expected] * 2), rtol=0.06)
    np.testing.assert_allclose(np.mean(g, 1), one.g, atol=0.01)
    np.testing.assert_allclose(np.std(g, 1), 0.3, rtol=0.03)


def test_every_component_needs_samples():
    with pytest.raises(jd.UsageError, match="at least 2 samples per component"):
        model.Mixture(samples=3)


# The judge and the figure of Theorem 3.


@pytest.fixture(scope="module")
def field_runs():
    grid = jd.grid(Mixture, activation=["relu", "tanh"], noise=["gauss"], tokens=5, components=2, samples=200_000)
    return jd.sweep(thm3.field_trial, grid, 4)


@pytest.mark.slow
def test_field_judge(field_runs):
    ds = field_runs
    assert upheld(thm3.judge_field, ds)
    assert not upheld(thm3.judge_field, distorted(ds, "rate", 1.1))
    assert not upheld(thm3.judge_field, distorted(ds, "size", 0.9))
    for rival in thm3.CLAIMS[0].rivals.values():
        assert refutes(thm3.judge_field, rival, ds)


@pytest.mark.slow
def test_figure_draws(field_runs):
    assert len(panels(thm3.CLAIMS[0], field_runs)) == 2


# Descent on the mixture of Theorem 3 against NumPy; the judges of its paths on made-up data.


@jax.jit
def thm3_path_sampled(s):
    """A mixture of two components over six tokens, samples of it, and the start."""
    one = net.sample_instance(jax.random.key(0), 6, 2, 1.0, 2.0)
    return one, *sample(jax.random.key(1), one, s, 20_000), net.start_weights(one)


@pytest.mark.slow
def test_descent_is_plain_gradient_descent(x64):
    s = inside(trial.Path(activation="tanh", eta=0.1, horizon=1.6))
    one, x, g, w = thm3_path_sampled(inside(Mixture()))
    x, g = x[:, :10], g[:, :10]
    f = np.asarray(net.features(one, x))
    path = jax.jit(trial.descend)(s, one, f, g)
    for _ in range(16):
        slope = 1 - np.tanh(f @ w) ** 2
        w = w + 0.1 * np.einsum("c,cn,cnd->d", one.share / 10, np.asarray(g) * slope, f)
    np.testing.assert_allclose(path[-1], w, atol=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"horizon": 0.1}, "horizon"),
        ({"horizon": 1.0, "eta": 0.05}, "whole multiple"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        trial.Path(**fields)


CLAIMS = {c.id: c for c in trial.CLAIMS}


@pytest.fixture(scope="module")
def path_runs():
    """Paths as the judge meets them: first-order step error, Monte Carlo error of the stated size, one activation."""
    rng = np.random.default_rng(0)
    eta, runs, path = np.array([0.04, 0.02, 0.01]), ("activation", "eta", "seed"), ("time", "coordinate")
    predicted, drift = rng.normal(size=(2, 1, 1, 6, 5, 4))
    step = eta[None, :, None, None, None]
    each = 0.05 * rng.normal(size=(1, 1, 6, 32, 5, 4))  # Monte Carlo errors of the replicates, the same for all step sizes
    paths = (predicted + 0.2 * step * drift + 0.1 * step**2)[:, :, :, None] + each
    measured = paths.mean(3)
    shape = measured.shape
    return xr.Dataset(
        {
            "predicted_path": ((*runs, *path), np.broadcast_to(predicted, shape)),
            "measured_path": ((*runs, *path), measured),
            "paths": ((*runs, "replicate", *path), paths),
            "without_xi": ((*runs, *path), np.broadcast_to(predicted + 0.1 * drift, shape)),
            "measured_in_span": (runs, np.full(shape[:3], 0.9)),
            "measured_pace": (runs, np.full(shape[:3], 0.5)),
            "start_cosine": (runs, np.full(shape[:3], 0.5)),
            "measured_cosine": (runs, np.full(shape[:3], 0.8)),
        },
        {"activation": ["tanh"], "eta": eta},
    )


def test_path_judge(path_runs):
    assert upheld(trial.judge_path, path_runs)
    assert not upheld(trial.judge_path, distorted(path_runs, "path", 1.1))
    assert not upheld(trial.judge_path, distorted(path_runs, "path", 0.9))
    for rival in CLAIMS["joma.thm3_path"].rivals.values():
        assert refutes(trial.judge_path, rival, path_runs)
    second_order = path_runs.assign(measured_path=path_runs.predicted_path + path_runs.eta**2 * path_runs.without_xi)
    assert not upheld(trial.judge_path, second_order)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        trial.judge_path(path_runs.isel(eta=slice(2)))
    with pytest.raises(jd.Inconclusive, match="half"):
        trial.judge_path(path_runs.assign_coords(eta=[0.04, 0.02, 0.012]))


def test_a_bend_away_from_the_law_is_found_whatever_its_length(path_runs):
    """At a right angle to the law's path, so that the length along it is unchanged."""
    law, bend = path_runs.predicted_path, path_runs.without_xi - path_runs.predicted_path
    across = bend - law * (bend * law).sum(["time", "coordinate"]) / (law**2).sum(["time", "coordinate"])
    off = path_runs.assign(paths=(path_runs.paths + across).transpose(*path_runs.paths.dims))
    assert [c.passed for c in trial.judge_path(off)] == [True, False, True]


def test_squared_distances_are_unbiased():
    """Against the double sum; and without a distance their mean is zero, though replicates scatter."""
    rng = np.random.default_rng(1)
    miss = xr.DataArray(rng.normal(size=(500, 8, 3, 2)), dims=("seed", "replicate", "time", "coordinate"))
    found = trial.squared_distance(miss)
    one = miss.values[7, 4:].reshape(4, 6)
    np.testing.assert_allclose(found.isel(seed=7, block=1), ((one @ one.T).sum() - (one**2).sum()) / 12)
    error = 6**0.5 * (2 / 12) ** 0.5 / 1000**0.5  # of 1000 estimates in 6 dimensions
    assert abs(float(found.mean())) < 4 * error
    assert float(trial.squared_distance(miss + 1).mean()) == pytest.approx(6, abs=8 * (error + 6**0.5 / 2000**0.5))


def test_figures_draw(path_runs):
    assert panels(CLAIMS["joma.thm3_path"], path_runs)
    assert panels(CLAIMS["joma.critical_points"], path_runs.isel(eta=[0]))


def test_critical_points_are_read(path_runs):
    assert [r.value for r in trial.judge_critical(path_runs)] == pytest.approx([0.8, 0.9, 0.0])


# Judges and figures of Theorem 4 in its reduced dynamics.


def test_every_token_starts_below_mu():
    with pytest.raises(jd.UsageError, match="start < mu_low"):
        thm4.Critical(start=0.6)


THM4_CLAIMS = {c.id: c for c in thm4.CLAIMS}


@pytest.fixture(scope="module")
def critical_runs():
    return jd.sweep(thm4_trial, jd.grid(Critical, attention=list(ATTENTIONS), tokens=3), 2)


@pytest.mark.slow
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
    assert upheld(judge, ds)
    for name in names:
        assert not upheld(judge, distorted(ds, name, 1.1))
    assert not upheld(judge, critical_runs.sel(attention="none"))


@pytest.mark.parametrize("claim", ["joma.thm4", "joma.thm4_offset", "joma.thm4_linear", "joma.time_change"])
def test_critical_figures_draw(critical_runs, claim):
    assert panels(THM4_CLAIMS[claim], critical_runs)


# Judges and figures of Theorem 4 in trained networks, on made-up distances and speeds.

THM4_TRAINED_CLAIMS = {c.id: c for c in thm4_trained.CLAIMS}


@pytest.fixture
def trained():
    """Rows that all approach their limit at the slowest mode's rate."""
    rng = np.random.default_rng(0)
    kappa = np.sort(rng.uniform(0.1, 1.5, (6, 5)), 1)
    t = np.linspace(0, 6, 8)
    distance = 1e-2 * np.exp(-t[:, None] + 0 * kappa[:, None]) * (1 + 0.1 * rng.uniform(size=(6, 1, 5)))
    theorem = 1e-2 * np.exp(-t[:, None] * np.exp(kappa - kappa[:, :1])[:, None])
    dims = ("seed", "window", "token")
    data = {
        "predicted_distance": (dims, distance),
        "measured_distance": (dims, distance * (1 + 0.01 * rng.normal(size=distance.shape))),
        "theorem": (dims, theorem),
        "measured_speed": (("seed", "token"), 1 + 0.01 * rng.normal(size=kappa.shape)),
        "kappa": (("seed", "token"), kappa),
        "loss": (("seed", "end"), np.tile([1.0, 0.2], (6, 1))),
        "decades": ("seed", np.full(6, 2.6)),
        "slowest": ("seed", np.ones(6)),
    }
    return xr.Dataset(data)


def test_trained_judge(trained):
    claim = THM4_TRAINED_CLAIMS["joma.thm4_trained"]
    assert upheld(claim.judge, trained)
    for rival in claim.rivals.values():
        assert refutes(claim.judge, rival, trained)
    grown = trained.assign(measured_speed=np.exp(trained.kappa))
    assert thm4_trained.exponent(grown).values == pytest.approx(np.ones(6))
    assert not upheld(claim.judge, grown)
    assert panels(claim, trained)


def test_separate_judge():
    rng = np.random.default_rng(0)
    kappa = rng.uniform(0.3, 1.1, (4, 5))
    rate = np.exp(2 * kappa) / 5 * np.stack([1 + 2 * kappa, np.ones_like(kappa)])[:, None]
    eta = np.array([0.08, 0.04, 0.02])
    runs = ("nodes", "eta", "seed", "token")
    measured = rate * (1 - 0.1 * eta[:, None, None] * rate)
    data = {"predicted_speed": (runs, np.broadcast_to(rate, measured.shape)), "measured_speed": (runs, measured)}
    ds = xr.Dataset(data | {"kappa": (runs, np.broadcast_to(kappa, measured.shape))}, {"nodes": [1, 3], "eta": eta})
    claim = THM4_TRAINED_CLAIMS["joma.thm4_separate"]
    assert upheld(claim.judge, ds)
    for rival in claim.rivals.values():
        assert refutes(claim.judge, rival, ds)
    one = thm4_trained.ACROSS_ALONE(ds)
    assert [check.passed for check in claim.judge(one)] == [True, False]
    assert [check.name.split(":")[0] for check in claim.judge(ds.sel(nodes=[3]))] == ["several nodes"]
    assert panels(claim, ds)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        claim.judge(ds.isel(eta=slice(2)))


# The entropy bounce against the published recursion in NumPy; its judges and figures.


def published_recursion(steps, eta=0.02, temperature=3.0):
    """The recursion behind Fig. 4, in NumPy: entropy at every step."""
    mu, v, h = np.array(published.FIG4_MU), np.full(10, 0.05), []
    for _ in range(steps):
        p = scipy.special.softmax(v**2 / temperature)
        h.append(-np.sum(p * np.log(p)))
        v = v + eta * (mu - v) * p
    return np.array(h)


@pytest.mark.slow
def test_published_numbers(bounce_runs):
    h = published_recursion(5001)
    low, at, last = published.FIG4.values()
    assert abs(h.min() - low) < 5e-5 and h.argmin() == at and abs(h[4999] - last) < 5e-5
    ours = bounce_runs.sel(draw="fig4", logits="law", drive="critical", eta=0.02).isel(seed=0)
    np.testing.assert_allclose(ours.measured_entropy, h[:: fig4_bounce.PREDICTED], atol=1e-11)
    assert float(ours.lowest_at) == at


def test_equal_critical_values_do_not_bounce(x64):
    s = inside(fig4_bounce.Bounce(spread=0.0))

    @jax.jit
    def after_one_step(key):
        mu = fig4_bounce.place(s, key)
        v = jnp.full_like(mu, 0.05)
        return fig4_bounce.step((v, v * v / 3), mu, s.eta, s)

    _, z = after_one_step(jax.random.key(3))
    np.testing.assert_allclose(entropy_of_logits(z), np.log(10), atol=1e-14)


def test_mu_may_be_given(x64):
    """With the figure's own numbers it is the run of the figure; the settings refuse what is no critical point."""
    given = inside(fig4_bounce.Bounce(mu=published.FIG4_MU))
    np.testing.assert_array_equal(fig4_bounce.place(given, jax.random.key(0)), np.array(published.FIG4_MU))
    np.testing.assert_array_equal(
        fig4_bounce.place(inside(fig4_bounce.Bounce(draw="fig4")), jax.random.key(0)), fig4_bounce.place(given, jax.random.key(1))
    )
    grid = jd.grid(fig4_bounce.Bounce).replace(mu="1.5:2.5", tokens=2)
    assert grid.base.mu == (1.5, 2.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"eta": 0.5}, "whole multiple"),
        ({"start": 1.0}, "start is below mu_low"),
        ({"mu": (1.0, 2.0)}, "one number per token"),
        ({"mu": (0.01, 2.0), "tokens": 2}, "above start"),
    ],
)
def test_fig4_bounce_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        fig4_bounce.Bounce(**fields)


FIG4_BOUNCE_CLAIMS = {c.id: c for c in fig4_bounce.CLAIMS}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "logits"), [("joma.bounce", ["law", "trained"]), ("joma.bounce_softmax", ["softmax"])])
def test_bounce_judges(bounce_runs, name, logits):
    claim, runs = FIG4_BOUNCE_CLAIMS[name], bounce_runs.sel(logits=logits)
    ds = runs.sel(drive="critical")
    assert upheld(claim.judge, ds)
    assert not upheld(claim.judge, distorted(ds, "entropy", 1.1))
    assert not upheld(claim.judge, distorted(ds, "limit", 1.1))
    for rival in claim.rivals.values():
        assert refutes(claim.judge, rival, ds)
    assert not upheld(claim.judge, runs.sel(drive="linear"))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        claim.judge(ds.isel(eta=slice(1)))


@pytest.mark.slow
def test_entropy_only_falls_without_a_critical_point(bounce_runs):
    h = bounce_runs.sel(drive="linear", logits=["law", "trained"]).measured_entropy.isel(seed=0)
    assert float(h.diff("time").max()) < 1e-9 and float(h.isel(time=-1).max()) < 1e-6  # falls, never rises


@pytest.mark.slow
def test_numbers_of_the_figure(bounce_runs):
    ds = bounce_runs.sel(drive="critical", eta=0.02)
    assert upheld(fig4_bounce.judge_figure, ds.sel(logits="law"))
    assert not upheld(fig4_bounce.judge_figure, ds.sel(logits="softmax"))
    softmax = ds.sel(logits="softmax").isel(seed=0)
    assert abs(float(softmax.lowest.item()) - 2.11) < 0.01 and abs(float(softmax["last"].item()) - 2.25) < 0.01


@pytest.mark.slow
def test_fig4_bounce_figures_draw(bounce_runs):
    ds = bounce_runs.sel(drive="critical", draw="fig4")
    assert panels(FIG4_BOUNCE_CLAIMS["joma.bounce"], ds)
    assert panels(FIG4_BOUNCE_CLAIMS["joma.fig4"], ds.sel(logits="law", eta=0.02))
