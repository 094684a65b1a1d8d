"""Gromov's construction: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.gromov import analytic_width, constructed, dynamics, model, waves_margin
from jaxdyn.theories.gromov import waves_margin as waves_topic
from jaxdyn.theories.gromov.constructed import OFFSETS, Constructed, observe

# Runs that the tests of gromov's claims share.


@pytest.fixture(scope="session")
def gromov_runs():
    """Small constructed networks of three moduli, at the seeds of the claims on accuracy and width."""
    return jd.sweep(constructed.trial, jd.grid(constructed.Constructed, moduli=(11, 17, 23)), seeds=192)


# Gromov's waves and margins.

# Moments of margins and the accuracy against quadrature.

TURN = 2 * np.pi


def test_margin_moments_are_integrals_over_phases(x64):
    phi, psi = np.meshgrid(*2 * [np.arange(16) * TURN / 16])  # exact for waves of order below 16
    theta, a, b, d = TURN * 3 / 11, 2, 7, 4

    def node(c):
        return (np.cos(theta * a + phi) + np.cos(theta * b + psi)) ** 2 * np.cos(theta * c + phi + psi)

    margin = node(a + b) - node(a + b + d)
    mean, variance = dynamics.margin_moments(jnp.array([theta]), jnp.array([float(d)]))
    assert float(mean[0, 0]) == pytest.approx(margin.mean(), rel=1e-12)
    assert float(variance[0, 0]) == pytest.approx(margin.var(), rel=1e-12)


def test_margin_moments_over_all_frequencies(x64):
    m = 13
    mean, variance = dynamics.margin_moments(jnp.arange(1, m) * TURN / m, jnp.array([1.0, 5.0]))
    np.testing.assert_allclose(mean.mean(1), m / (2 * (m - 1)), rtol=1e-13)
    np.testing.assert_allclose(variance.mean(1), 33 * m / (16 * (m - 1)), rtol=1e-13)


def test_constants_of_the_accuracy_are_integrals_over_phases():
    p, q = np.meshgrid(*2 * [np.arange(16) * TURN / 16])
    g = (1 + np.cos(p)) * (1 + np.cos(q))
    s, t = g * np.cos(p), g**2 / 2
    assert (s.mean(), t.mean()) == pytest.approx((dynamics.MEAN_S, dynamics.MEAN_T))
    assert (s.var(), t.var()) == pytest.approx((dynamics.VAR_S, dynamics.VAR_T))
    assert np.mean(s * t) - s.mean() * t.mean() == pytest.approx(dynamics.COV_ST)


@pytest.mark.parametrize("together, variance", [(True, 2305 / 5832), (False, 17 / 18)])
def test_accuracy_is_the_stated_integral(together, variance, x64):
    def share(k, m):
        def density(z):
            ratio = np.sqrt(m / (m - 1)) * (np.sqrt(2 * k) / 3 + np.sqrt(variance) * z)
            return scipy.stats.norm.pdf(z) * scipy.stats.norm.cdf(ratio) ** (m - 1)

        return scipy.integrate.quad(density, -12, 12, epsabs=1e-12)[0]

    found = dynamics.accuracy(jnp.array([16.0, 64.0]), 23, together=together)
    np.testing.assert_allclose(found, [share(16, 23), share(64, 23)], atol=1e-9)


# Sums of waves against the network's own logits.


@pytest.mark.slow
def test_waves_add_up_to_the_logits_where_the_output_has_the_sum_of_the_phases(x64):
    for how in ({}, {"cycled": True}):
        nodes = model.sample_nodes(jax.random.key(3), 7, 5, **how)
        np.testing.assert_allclose(dynamics.waves(nodes, 7), model.logits(nodes, 7), atol=1e-12)
    free = model.sample_nodes(jax.random.key(3), 7, 5, free=True)
    assert np.max(np.abs(np.asarray(dynamics.waves(free, 7) - model.logits(free, 7)))) > 0.1


def test_coherent_waves_are_the_mean_over_phases(x64):
    nodes = model.sample_nodes(jax.random.key(3), 7, 5)
    phi, psi = (2 * np.pi * np.stack(np.meshgrid(np.arange(5), np.arange(5))).reshape(2, -1, 1) / 5 + 0.3) * np.ones(5)
    every = jax.vmap(lambda p, q: model.logits(model.Nodes(nodes.theta, p, q, p + q), 7))(phi, psi)
    np.testing.assert_allclose(every.mean(0), dynamics.coherent(nodes, 7), atol=1e-12)


# The constructed network against loops in NumPy.


def drawn(modulus=7, count=5, **how):
    return model.sample_nodes(jax.random.key(3), modulus, count, **how)


def test_logits_are_those_of_a_loop(x64):
    nodes, modulus = drawn(free=True), 7
    theta, phi, psi, chi = map(np.asarray, nodes)
    slow = np.zeros((modulus**2, modulus))
    for i, (a, b) in enumerate(model.pairs(modulus)):
        for c in range(modulus):
            hidden = (np.cos(theta * a + phi) + np.cos(theta * b + psi)) ** 2
            slow[i, c] = np.sum(hidden * np.cos(theta * c + chi))
    np.testing.assert_allclose(jax.jit(model.logits, static_argnums=1)(nodes, modulus), slow, atol=1e-12)
    assert list(model.labels(3)) == [0, 1, 2, 1, 2, 0, 2, 0, 1]


@pytest.mark.slow
def test_construction_ties_the_phases_and_cycles_the_frequencies(x64):
    tied, free, cycled = drawn(), drawn(free=True), drawn(count=20, cycled=True)
    np.testing.assert_array_equal(tied.chi, tied.phi + tied.psi)
    assert np.min(np.abs(np.asarray(free.chi - free.phi - free.psi))) > 1e-3
    np.testing.assert_allclose(np.asarray(cycled.theta) * 7 / TURN, np.arange(1, 21) % 7, atol=1e-12)
    k = np.asarray(drawn(count=500).theta) * 7 / TURN
    assert set(np.round(k).astype(int)) == set(range(1, 7))


def test_free_output_phases_are_no_better_than_chance(x64):
    def share(key):
        return jnp.mean(jnp.argmax(model.logits(model.sample_nodes(key, 11, 64, free=True), 11), 1) == model.labels(11))

    found = jax.jit(jax.vmap(share))(jax.random.split(jax.random.key(4), 64))
    assert float(found.mean()) == pytest.approx(1 / 11, abs=0.03)


# The judges of accuracy and width.


def test_width_is_interpolated_and_missing_where_the_goal_is_not_reached():
    rows = xr.DataArray([[0.5, 1.0], [0.5, 0.6]], dims=("modulus", "nodes"))
    found = analytic_width.width([16, 32], rows, 0.75).values
    assert found[0] == pytest.approx(24) and np.isnan(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("judge", [pytest.param(analytic_width.judge_accuracy, marks=pytest.mark.slow), analytic_width.judge_width])
def test_judges_hold_and_reject_a_tenth(gromov_runs, judge):
    assert all(c.passed for c in judge(gromov_runs))
    for factor in (0.9, 1.12):
        assert not all(c.passed for c in judge(jd.scaled(predicted_accuracy=factor)(gromov_runs)))


@pytest.mark.slow
def test_judges_say_when_data_are_too_few(gromov_runs):
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        analytic_width.judge_accuracy(gromov_runs.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of modulus"):
        analytic_width.judge_width(gromov_runs.isel(modulus=slice(2)))


# What settings of the constructed network refuse, and its records against the plain network.


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"moduli": (9,)}, "all are prime to 6"),
        ({"moduli": (22,)}, "all are prime to 6"),
        ({"moduli": (7,)}, "moduli are above 10"),
        ({"moduli": ()}, "at least one modulus"),
        ({"moduli": (11, 11)}, "moduli differ"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Constructed(**fields)


@pytest.mark.slow
def test_records_are_those_of_the_plain_network_at_every_width(x64):
    s = Constructed(moduli=(11,), step=3, blocks=2)
    nodes = model.sample_nodes(jax.random.key(0), 11, 6)
    records = jax.jit(lambda n: observe(s, n, 11))(nodes)
    right = model.labels(11)
    for place, width in enumerate((3, 6)):
        out = np.asarray(model.logits(jax.tree.map(lambda x, w=width: x[:w], nodes), 11))
        margin = np.stack([out[np.arange(121), right] - out[np.arange(121), (right + offset) % 11] for offset in OFFSETS], 1)
        assert float(records["accuracy"][place]) == np.mean(np.argmax(out, 1) == right)
        np.testing.assert_allclose(records["mean"][place], margin.mean(0), atol=1e-12)
        np.testing.assert_allclose(records["variance"][place], margin.var(0), rtol=1e-10)


# The judge of the margins.


def with_noise(ds, size=0.05):
    """The runs with variances of the law, measured with an error."""
    noise = np.random.default_rng(0).normal(size=ds.predicted_variance.shape)
    return ds.assign(measured_variance=ds.predicted_variance * (1 + size * noise))


@pytest.mark.parametrize("name", ["mean", "variance"])
def test_judge_holds_and_rejects_a_tenth(gromov_runs, name):
    ds = with_noise(gromov_runs)
    assert all(c.passed for c in waves_margin.judge_margin(ds))
    for factor in (0.9, 1.12):
        assert any(c.passed is False for c in waves_margin.judge_margin(jd.scaled(**{f"predicted_{name}": factor})(ds)))


def test_few_small_networks_refute_nothing(gromov_runs):
    assert all(c.passed is not False for c in waves_margin.judge_margin(gromov_runs))
    assert [c.passed for c in waves_margin.judge_margin(waves_margin.alike(gromov_runs))] == [True, False, False]


# The judge of the waves.


def test_waves_judge_holds_and_rejects_a_tenth(gromov_runs):
    assert all(c.passed for c in waves_topic.judge_waves(gromov_runs))
    for factor in (0.9, 1.12):
        assert not all(c.passed for c in waves_topic.judge_waves(jd.scaled(predicted_logits=factor)(gromov_runs)))
