"""The constructed network against NumPy; its waves, margins and accuracy against quadrature; the judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.gromov import claims, dynamics, model

TURN = 2 * np.pi


def drawn(modulus=7, count=5, **how):
    return model.draw(jax.random.key(3), modulus, count, **how)


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


def test_construction_ties_the_phases_and_cycles_the_frequencies(x64):
    tied, free, cycled = drawn(), drawn(free=True), drawn(count=20, cycled=True)
    np.testing.assert_array_equal(tied.chi, tied.phi + tied.psi)
    assert np.min(np.abs(np.asarray(free.chi - free.phi - free.psi))) > 1e-3
    np.testing.assert_allclose(np.asarray(cycled.theta) * 7 / TURN, np.arange(1, 21) % 7, atol=1e-12)
    k = np.asarray(drawn(count=500).theta) * 7 / TURN
    assert set(np.round(k).astype(int)) == set(range(1, 7))


def test_waves_add_up_to_the_logits_for_any_phases(x64):
    for how in ({}, {"free": True}, {"cycled": True}):
        nodes = drawn(**how)
        np.testing.assert_allclose(dynamics.waves(nodes, 7), model.logits(nodes, 7), atol=1e-12)
    assert np.max(np.abs(np.asarray(dynamics.waves(nodes, 7, slip=True) - model.logits(nodes, 7)))) > 0.1


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


def test_width_is_interpolated_and_missing_where_the_goal_is_not_reached():
    rows = xr.DataArray([[0.5, 1.0], [0.5, 0.6]], dims=("modulus", "nodes"))
    found = claims.width([16, 32], rows, 0.75).values
    assert found[0] == pytest.approx(24) and np.isnan(found[1])


@pytest.fixture(scope="module")
def small():
    return jd.sweep(claims.trial, jd.grid(claims.Constructed, moduli=(11, 17, 23), step=16, blocks=9), seeds=48)


def rejects(judge, ds, name, factor):
    return not all(c.passed for c in judge(ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})))


@pytest.mark.parametrize(
    "name, judge",
    [
        ("logits", claims.judge_waves),
        ("mean", claims.judge_margin),
        ("variance", claims.judge_margin),
        ("accuracy", claims.judge_accuracy),
        ("accuracy", claims.judge_width),
    ],
)
def test_judges_hold_and_reject_a_tenth(small, name, judge):
    assert all(c.passed for c in judge(small))
    assert rejects(judge, small, name, 0.9) and rejects(judge, small, name, 1.12)


def test_free_output_phases_are_no_better_than_chance(x64):
    def share(key):
        return jnp.mean(jnp.argmax(model.logits(model.draw(key, 11, 64, free=True), 11), 1) == model.labels(11))

    found = jax.jit(jax.vmap(share))(jax.random.split(jax.random.key(4), 64))
    assert float(found.mean()) == pytest.approx(1 / 11, abs=0.03)


@pytest.mark.parametrize("fields", [{"moduli": (9,)}, {"moduli": (22,)}, {"moduli": ()}, {"step": 0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"got .*{next(iter(fields))}="):
        claims.Constructed(**fields)


def test_judges_say_when_data_are_too_few(small):
    with pytest.raises(jd.Inconclusive):
        claims.judge_accuracy(small.isel(seed=slice(2)))
    with pytest.raises(jd.Inconclusive):
        claims.judge_width(small.isel(modulus=slice(2)))
