"""Muon's pieces against SciPy and exact recursions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.li2.dynamics import muon

MU = np.linspace(0.5, 1, 8)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from([0.01, 0.5, 3.0]), st.sampled_from([1e-3, 0.1, 2.0]))
def test_last_column_is_a_rotation_in_a_plane(seed, along, across):
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(9, 5)))[0]
    q, e = frame[:, :4], frame[:, 4]
    a = rng.normal(size=4)
    v = along * (q @ a) / np.linalg.norm(a)
    column = scipy.linalg.polar(np.column_stack([q, v + across * e]))[0][:, -1]
    exact = (v + (1 + across) * e) / np.hypot(1 + across, along)
    np.testing.assert_allclose(column, exact, atol=1e-11)
    with jax.enable_x64(True):
        predicted = np.asarray(muon.appended(jnp.asarray(v), jnp.asarray(across * e)))
        error = float(muon.appended_error(jnp.float64(along), jnp.float64(across)))
    np.testing.assert_allclose(predicted, e + v / (1 + across), atol=1e-12)
    if along < 0.05 * (1 + across):
        assert np.linalg.norm(predicted - column) == pytest.approx(error, rel=2e-3)


def flow(alpha, mu, until):
    """Equation 10 by SciPy: in the ball up to the event, then on the sphere."""

    def ball(t, x):
        return mu * x**2

    def reached(t, x):
        return np.linalg.norm(x) - 1

    reached.terminal = True
    first = scipy.integrate.solve_ivp(ball, (0, 1e6), alpha, events=reached, rtol=1e-11, atol=1e-14, method="DOP853")

    def sphere(t, x):
        return mu * x**2 - x * np.sum(mu * x**3)

    on = first.y[:, -1]
    last = scipy.integrate.solve_ivp(sphere, (0, until), on, rtol=1e-11, atol=1e-14, method="DOP853")
    return on / np.linalg.norm(on), last.y[:, -1]


def test_flow_through_ball_and_sphere_is_scipys(x64):
    rng = np.random.default_rng(1)
    starts = rng.uniform(0.01, 0.3, (12, 8))
    surfaces = jax.jit(jax.vmap(lambda a: muon.surface(a, MU)))(starts)
    ends = jax.jit(jax.vmap(lambda a: muon.run(a, MU)))(starts)
    for start, surface, end in zip(starts, surfaces, ends, strict=True):
        on, last = flow(start, MU, 200)
        np.testing.assert_allclose(surface, on, atol=1e-8)
        np.testing.assert_allclose(end, last, atol=1e-6)
        assert np.argmax(end) == np.argmax(MU * start)


def test_leads_grow_at_the_difference_of_rates(x64):
    alpha = np.random.default_rng(2).uniform(0.1, 0.4, 8)
    alpha /= np.linalg.norm(alpha)
    change = np.asarray(muon.field(jnp.asarray(alpha), jnp.asarray(MU))) / alpha
    rate = MU * alpha
    np.testing.assert_allclose(change[:, None] - change, rate[:, None] - rate, atol=1e-14)
    assert abs(np.sum(change * alpha**2)) < 1e-15  # stays on the sphere


def test_large_starts_are_shrunk_without_changing_the_lead(x64):
    start = jnp.asarray(np.random.default_rng(3).uniform(1, 50, 8))
    inside = 0.5 * start / jnp.linalg.norm(start)
    np.testing.assert_allclose(muon.surface(start, MU), muon.surface(inside, MU), atol=1e-12)


def test_coupling_moves_the_winner(x64):
    start = jnp.asarray(np.full(8, 0.2))
    coupling = np.zeros((8, 8))
    coupling[0, 7] = 3.0  # the strongest feature feeds the weakest
    assert int(jnp.argmax(muon.run(start, MU))) == 7
    assert int(jnp.argmax(muon.run(start, MU, coupling=jnp.asarray(coupling)))) == 0


def recursion(weights, suppression):
    """Mean numbers of draws that collect everything, over all sets of what is there, the largest first."""
    features = len(weights)
    mean = {frozenset(range(features)): 0.0}
    for size in range(features - 1, -1, -1):
        for have in map(frozenset, itertools.combinations(range(features), size)):
            w = np.array([x * (suppression if i in have else 1) for i, x in enumerate(weights)])
            p = w / w.sum()
            fresh = [i for i in range(features) if i not in have]
            ahead = sum(p[i] * mean[have | {i}] for i in fresh)
            mean[have] = (1 + ahead) / sum(p[i] for i in fresh)
    return mean[frozenset()]


@pytest.mark.parametrize("a", [1.0, 3.0])
def test_numbers_of_nodes_are_those_of_the_markov_chain(a, x64):
    p = muon.selection(jnp.asarray(MU), a)
    np.testing.assert_allclose(p, MU**a / np.sum(MU**a), rtol=1e-14)
    t0 = float(jax.jit(muon.collect)(p))
    assert t0 == pytest.approx(recursion(MU**a, 1.0), rel=1e-11)
    assert float(muon.guided(t0, 8, a)) == pytest.approx(recursion(MU**a, 0.5**a), rel=1e-11)
    assert recursion(MU**a, 0.4**a) < float(muon.guided(t0, 8, a))
    if a == 3:
        assert t0 == pytest.approx(43.585, abs=5e-4) and float(muon.guided(t0, 8, a)) == pytest.approx(12.448, abs=5e-4)


def test_bounds_and_who_reaches_them(x64):
    equal = jnp.full(5, 0.2, jnp.float64)
    printed, derived = map(float, muon.bound(equal))
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    assert printed == pytest.approx(5) and derived == pytest.approx(5 * harmonic)
    assert float(muon.collect(equal)) == pytest.approx(derived, rel=1e-13)
    rng = np.random.default_rng(4)
    for p in rng.dirichlet(np.ones(5), 20):
        assert float(muon.collect(jnp.asarray(p))) >= float(muon.bound(jnp.asarray(p))[1]) * (1 - 1e-12)


def test_needed_counts_rounds_one_after_the_other(x64):
    winners = jnp.array([0, 0, 1, 2, 2, 1, 0, 1, 1])
    assert float(muon.needed(winners, 3, 1)) == 4
    assert float(muon.needed(winners, 3, 2)) == 3.5
    assert float(muon.needed(winners, 3, 3)) == np.inf


def test_guided_collection_of_known_starts(x64):
    mu = jnp.array([1.0, 1.0])
    rows = jnp.array([[0.3, 0.2], [0.3, 0.2], [0.3, 0.1], [0.3, 0.2]])
    assert float(muon.needed_guided(rows, mu, 0.5)) == 2  # the second start's first feature is halved, and loses
    assert float(muon.needed_guided(rows, mu, 1.0)) == np.inf
    assert float(muon.needed_guided(rows[2:], mu, 0.4)) == 2
    assert float(muon.needed_guided(rows[:1], mu, 0.5)) == np.inf


def test_draws_have_the_frechet_law(x64):
    x = np.asarray(muon.frechet(jax.random.key(5), (4000,), 3.0))
    assert scipy.stats.kstest(x, lambda v: np.exp(-(v**-3.0))).pvalue > 0.01
