"""Rates of the searching and the answering layer against finite differences, brute force and leading terms."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, linprog, minimize

from jaxdyn.theories.emer import published
from jaxdyn.theories.emer.dynamics import answer, search


def loss(mu_a, mu_r, n, k, reachable):
    xi = np.zeros(n)
    xi[:k] += mu_a / k**0.5
    xi[0] += mu_r
    xi[-1] += mu_r
    return np.log(np.exp(xi).sum()) - xi[0 if reachable else -1]


@pytest.mark.parametrize("reachable", [True, False])
def test_rates_descend_the_loss(reachable, x64):
    law, h, (a, r) = answer.Law(7.0, 4.0, 0.3, 2.0, float(reachable)), 1e-6, (0.8, -0.4)
    slope_a = (loss(a + h, r, 7, 4, reachable) - loss(a - h, r, 7, 4, reachable)) / 2 / h
    slope_r = (loss(a, r + h, 7, 4, reachable) - loss(a, r - h, 7, 4, reachable)) / 2 / h
    np.testing.assert_allclose(answer.field(0.0, jnp.asarray([a, r]), law), [-0.3 * slope_a, -2.0 * slope_r], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_leading_terms_and_direction(rate, x64):
    law = answer.Law(7.0, 4.0, rate, 1.0, True)
    ts = jnp.asarray([0.0, 1e11, 1e12])
    ys = answer.solve(law, ts).ys
    np.testing.assert_allclose(ys[-1], answer.asymptote(law, ts)[:, -1], rtol=1e-6)
    np.testing.assert_allclose((ys[-1] - ys[-2])[0] / (ys[-1] - ys[-2])[1], 2.0, rtol=1e-6)


@pytest.mark.slow
def test_the_ratio_is_late(x64):
    ts = jnp.asarray([0.0, *published.RATIOS])
    ys = answer.solve(answer.Law(23.0, 9.0, 1.0, 1.0, True), ts).ys
    np.testing.assert_allclose((ys[1:, 0] / ys[1:, 1]), list(published.RATIOS.values()), atol=0.006)


THOUGHT = np.array([1, 1, 1, 0, 0, 0, 0]) / 3**0.5


def made(seed=0, target=4, bfs=False, free=1.0):
    """A random instance with in-degrees 1, 2, 3, 0 outside the thought."""
    rng = np.random.default_rng(seed)
    edges = (rng.uniform(size=(7, 7)) < 0.3).astype(float) * (1 - np.eye(7))
    edges[:3, 3:] = [[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]]
    reached = (THOUGHT > 0) | (THOUGHT @ edges > 0)
    return search.law(jnp.asarray(THOUGHT), jnp.asarray(edges), jnp.eye(7)[target], jnp.asarray(reached), bfs, free)


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


@pytest.mark.parametrize("bfs", [False, True])
def test_rates_descend_the_loss_of_search(bfs, x64):
    law = made(bfs=bfs)
    a, b, prior = np.asarray(law.a), np.asarray(law.b), np.asarray(law.prior)

    def loss(mu, nu):
        p = softmax(prior + mu * a + nu * b)
        return -np.log(p[np.asarray(law.reached)].sum() if bfs else p[4])

    h, (mu, nu) = 1e-6, (0.7, -0.2)
    slopes = [(loss(mu + h, nu) - loss(mu - h, nu)) / 2 / h / 7, (loss(mu, nu + h) - loss(mu, nu - h)) / 2 / h / 42]
    np.testing.assert_allclose(search.field(0.0, jnp.asarray([mu, nu]), law), -np.array(slopes), rtol=1e-6, atol=1e-9)


def test_root_is_where_the_mean_degree_is_the_targets(x64):
    law = made(target=4)
    f = lambda mu: softmax(np.asarray(law.prior) + mu * np.asarray(law.a)) @ np.asarray(law.a) - float(law.target @ law.a)  # noqa: E731
    np.testing.assert_allclose(search.root(law), brentq(f, -50, 50, xtol=1e-14), atol=1e-12)
    np.testing.assert_allclose(search.mean_degree(law, search.root(law)), law.target @ law.a, rtol=1e-12)
    assert float(search.root(made(target=5))) > 30, "no root: the end of the interval, or where both sides round alike"


@pytest.mark.slow
@pytest.mark.parametrize(("target", "bfs"), [pytest.param(5, False, marks=pytest.mark.slow), (4, True)])
def test_growth_of_the_solution(target, bfs, x64):
    law = made(target=target, bfs=bfs, free=0.0)
    path, _ = search.solve(law)
    slope, factor = search.growth(law)
    np.testing.assert_allclose((path[-1, 0] - path[-2, 0]) / np.log(10), slope, rtol=1e-3)
    np.testing.assert_allclose(path[-1, 0], slope * np.log(factor * 1e12), rtol=1e-3)
    np.testing.assert_allclose(slope, 3**0.5 / 3 if bfs else 3**0.5 / (3 - 2), rtol=1e-12)
    assert float(path[-1, 1]) == 0


@pytest.mark.slow
def test_bounded_solution(x64):
    law = made(target=4, free=0.0)
    path, _ = search.solve(law)
    np.testing.assert_allclose(path[-1, 0], search.root(law), atol=1e-12)
    short = search.solve_short(law, jnp.asarray([0.0, 10.0, 100.0])).ys
    np.testing.assert_allclose(short, path[:3], atol=1e-6)


def test_hull_by_linear_programming(x64):
    signs = set()
    for seed in range(12):
        for target in range(3, 6):
            law = made(seed, target)
            x = np.stack([law.a, law.b], -1)
            difference = x[target] - np.delete(x, target, 0)
            difference = difference[np.abs(difference).sum(1) > 1e-9]
            margin = linprog(
                [0, 0, -1], np.c_[-difference, np.ones(len(difference))], np.zeros(len(difference)), bounds=[(-1, 1)] * 3
            )
            gap = float(search.hull_gap(law))
            assert (gap > 1e-9) == (-margin.fun > 1e-9)
            signs.add(gap > 1e-9)
    assert signs == {True, False}


@pytest.mark.slow
def test_slope_of_the_largest_margin(x64):
    law = made(target=5)
    assert float(search.hull_gap(law)) > 0
    x = np.stack([law.a, law.b], -1)
    difference = x[5] - np.delete(x, 5, 0)
    norm = lambda y: 7 * y[0] ** 2 + 42 * y[1] ** 2  # noqa: E731
    best = minimize(norm, [5.0, 0.0], constraints={"type": "ineq", "fun": lambda y: difference @ y - 1}, options={"ftol": 1e-14})
    np.testing.assert_allclose(search.margin_slope(law), best.x[0], rtol=1e-5)
