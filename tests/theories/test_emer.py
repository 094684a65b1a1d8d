"""Emergence of superposition: layers, instances, short searches, and settings that are refused.

Rates of the searching and the answering layer against finite differences, brute force and leading terms.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, linprog, minimize

import jaxdyn as jd
from jaxdyn.status import OK
from jaxdyn.theories.emer import direction, dynamics, model
from jaxdyn.theories.emer.direction import Reply
from jaxdyn.theories.emer.search import SearchFlow, SearchSgd, off_structure, sgd_trial

# The searching and the answering layer against loops over edges and tokens; relabellings against all permutations.


def test_logits_are_those_of_attention_to_every_edge(x64):
    rng = np.random.default_rng(0)
    n, d = 5, 7
    embed = np.linalg.qr(rng.normal(size=(d, n)))[0]
    w, thought = rng.normal(size=(d, d)), rng.uniform(size=n)
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (2, 0), (2, 0)]
    stream = embed @ thought
    out = stream.copy()
    for s, t in edges:
        out = out + (stream @ w @ embed[:, s]) * embed[:, t]
    table = np.zeros((n, n))
    for s, t in edges:
        table[s, t] += 1
    np.testing.assert_allclose(model.logits(w, embed, thought, table), embed.T @ out, rtol=1e-12)


def test_losses(x64):
    xi = jnp.asarray([0.3, -1.0, 2.0])
    p = np.exp(xi) / np.exp(xi).sum()
    np.testing.assert_allclose(model.coconut_loss(xi, jnp.eye(3)[2]), -np.log(p[2]), rtol=1e-12)
    np.testing.assert_allclose(model.bfs_loss(xi, jnp.asarray([True, False, True])), -np.log(p[0] + p[2]), rtol=1e-12)
    m = model.Answer(jnp.eye(3) * 2, jnp.ones((3, 3)))
    thought, both = jnp.asarray([0.5, 0.5, 0.0]), jnp.asarray([1.0, 0.0, 1.0])
    expected = model.coconut_loss(jnp.asarray([1.0, 1.0, 0.0]), jnp.eye(3)[0])
    np.testing.assert_allclose(model.answer_loss(m, thought, both, jnp.eye(3)[0]), expected, rtol=1e-12)


def test_relabellings_average_a_matrix_like_all_permutations(x64):
    w = jax.random.normal(jax.random.key(0), (5, 5), jnp.float64)
    few = np.asarray(model.relabellings(5))
    assert (
        len(few) == 20 and few[0].tolist() == [0, 1, 2, 3, 4] and {tuple(sorted(row)) for row in few.tolist()} == {(0, 1, 2, 3, 4)}
    )
    means = [np.mean([model.relabel(np.asarray(w), np.array(order)) for order in orders], 0) for orders in (few, permutations(5))]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-12)
    np.testing.assert_allclose(model.relabel(np.arange(5), few[1]), few[1])


def permutations(n):
    return list(itertools.permutations(range(n)))


# Settings that are refused.


@pytest.mark.parametrize("wrong", [{"vertices": 9}, {"inside": 6.0}, {"lr": 7.0}])
def test_refused_settings_of_the_direction(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        Reply(**wrong)


# Instances have the degrees that their regimes need, and reach what one step reaches.


@pytest.mark.parametrize(("target", "place", "degree"), [("top", 5, 3), ("middle", 4, 2), ("low", 3, 1)])
def test_degrees_and_targets(target, place, degree, x64):
    for seed in range(5):
        case = model.sample(jax.random.key(seed), 7, 3.0, 1.0, 0.4, jd.Code.of(target, model.TARGETS))
        thought, edges = np.asarray(case.thought), np.asarray(case.edges)
        np.testing.assert_allclose(thought, [3**-0.5] * 3 + [0] * 4)
        assert set(np.unique(edges)) <= {0, 1} and not edges.diagonal().any()
        assert edges[:3, 3:].sum(0).tolist() == [1, 2, 3, 0]
        assert np.argmax(case.target) == place and edges[:3, place].sum() == degree
        assert np.asarray(case.reached).tolist() == [v < 3 or bool(edges[:3, v].any()) for v in range(7)]


def test_renamed_instances_are_the_same_graph(x64):
    case = model.sample(jax.random.key(1), 7, 3.0, 2.0, 0.4, jd.Code.of("top", model.TARGETS))
    order = np.asarray(model.relabellings(7))[10]
    other = model.renamed(case, order)
    for v in range(7):
        assert other.thought[v] == case.thought[order[v]] and bool(other.reached[v]) == bool(case.reached[order[v]])
        for u in range(7):
            assert other.edges[u, v] == case.edges[order[u], order[v]]


def test_random_digraphs(x64):
    key = jax.random.key(0)
    assert float(model.random_digraph(key, 6, 0.0).sum()) == 0
    assert float(model.random_digraph(key, 6, 1.0).sum()) == 30


# Flows to t = 1e12 with a closed form: logarithmic growth, and a limit.


def test_growth_and_limit(x64):
    def field(t, y, rate):
        return {"grows": rate * jnp.exp(-y["grows"]), "settles": rate * (1 - jnp.exp(y["settles"] - 2))}

    ys, status = dynamics.solve_in_log_time(field, {"grows": jnp.zeros(3), "settles": jnp.float64(0)}, jnp.float64(0.5))
    assert int(status) == OK and ys["grows"].shape == (13, 3) and dynamics.TIMES[-1] == 1e12
    np.testing.assert_allclose(ys["grows"][:, 1], np.log1p(0.5 * np.asarray(dynamics.TIMES)), atol=2e-4)
    np.testing.assert_allclose(ys["settles"][4:], 2.0, atol=1e-10)
    assert dynamics.DECADE == np.log(10)


# What is left of a matrix outside of the structure, and settings that are refused.


def test_what_is_left_of_a_matrix(x64):
    w = np.full((4, 4), 0.5) + 2.0 * np.eye(4)
    mu, nu, rest = off_structure(w)
    np.testing.assert_allclose((mu, nu, rest), (2.5, 0.5, 0), atol=1e-15)
    assert float(off_structure(w + np.diag([1.0, -1, 0, 0]))[2]) == pytest.approx((2 / 16) ** 0.5)


@pytest.mark.parametrize("wrong", [{"vertices": 8}, {"inside": 4.0}, {"gap": 3.0}, {"renaming": 0.5}])
def test_refused_settings_of_a_search_by_flow(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        SearchFlow(**wrong)


# Short SGD in the full matrix: near the two equations, nearer with smaller steps; new graphs are searched.


@pytest.mark.slow
def test_sgd_and_theory():
    grid = jd.grid(SearchSgd, target="top", train=["diagonal", "full"], lr=[1.0, 0.25], renaming=[0.0, 1.0], span=10.0, fresh=16)
    ds = jd.sweep(sgd_trial, grid, 2)
    assert int(ds.status.max()) == 0
    end = ds.isel(record=-1).sel(renaming=1.0)
    np.testing.assert_allclose(end.measured_mu, end.predicted_mu, rtol=0.05)
    assert float(end.rest.sel(lr=0.25).mean()) < 0.7 * float(end.rest.sel(lr=1.0).mean())
    assert float(abs(end.measured_nu.sel(train="diagonal")).max()) < 1e-6
    assert float(ds.rest.isel(record=-1).sel(renaming=0.0).min()) > 3 * float(end.rest.max())
    assert float(end.measured_support.sel(train="diagonal").min()) == 1.0 > float(end.untrained.max())


@pytest.mark.parametrize("wrong", [{"width": 9}, {"inside": 7.0}, {"gap": 3.0}, {"lr": 50.0}])
def test_refused_settings_of_a_search_by_sgd(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        SearchSgd(**wrong)


def loss(mu_a, mu_r, n, k, reachable):
    xi = np.zeros(n)
    xi[:k] += mu_a / k**0.5
    xi[0] += mu_r
    xi[-1] += mu_r
    return np.log(np.exp(xi).sum()) - xi[0 if reachable else -1]


@pytest.mark.parametrize("reachable", [True, False])
def test_rates_descend_the_loss(reachable, x64):
    law, h, (a, r) = dynamics.AnswerLaw(7.0, 4.0, 0.3, 2.0, float(reachable)), 1e-6, (0.8, -0.4)
    slope_a = (loss(a + h, r, 7, 4, reachable) - loss(a - h, r, 7, 4, reachable)) / 2 / h
    slope_r = (loss(a, r + h, 7, 4, reachable) - loss(a, r - h, 7, 4, reachable)) / 2 / h
    np.testing.assert_allclose(dynamics.answer_field(0.0, jnp.asarray([a, r]), law), [-0.3 * slope_a, -2.0 * slope_r], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_leading_terms_and_direction(rate, x64):
    law = dynamics.AnswerLaw(7.0, 4.0, rate, 1.0, True)
    ts = jnp.asarray([0.0, 1e11, 1e12])
    ys = dynamics.solve_answer(law, ts).ys
    np.testing.assert_allclose(ys[-1], dynamics.asymptote(law, ts)[:, -1], rtol=1e-6)
    np.testing.assert_allclose((ys[-1] - ys[-2])[0] / (ys[-1] - ys[-2])[1], 2.0, rtol=1e-6)


@pytest.mark.slow
def test_the_ratio_is_late(x64):
    ts = jnp.asarray([0.0, *direction.RATIOS])
    ys = dynamics.solve_answer(dynamics.AnswerLaw(23.0, 9.0, 1.0, 1.0, True), ts).ys
    np.testing.assert_allclose((ys[1:, 0] / ys[1:, 1]), list(direction.RATIOS.values()), atol=0.006)


THOUGHT = np.array([1, 1, 1, 0, 0, 0, 0]) / 3**0.5


def made(seed=0, target=4, bfs=False, free=1.0):
    """A random instance with in-degrees 1, 2, 3, 0 outside the thought."""
    rng = np.random.default_rng(seed)
    edges = (rng.uniform(size=(7, 7)) < 0.3).astype(float) * (1 - np.eye(7))
    edges[:3, 3:] = [[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]]
    reached = (THOUGHT > 0) | (THOUGHT @ edges > 0)
    return dynamics.law(jnp.asarray(THOUGHT), jnp.asarray(edges), jnp.eye(7)[target], jnp.asarray(reached), bfs, free)


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
    np.testing.assert_allclose(dynamics.field(0.0, jnp.asarray([mu, nu]), law), -np.array(slopes), rtol=1e-6, atol=1e-9)


def test_root_is_where_the_mean_degree_is_the_targets(x64):
    law = made(target=4)
    f = lambda mu: softmax(np.asarray(law.prior) + mu * np.asarray(law.a)) @ np.asarray(law.a) - float(law.target @ law.a)  # noqa: E731
    np.testing.assert_allclose(dynamics.root(law), brentq(f, -50, 50, xtol=1e-14), atol=1e-12)
    np.testing.assert_allclose(dynamics.mean_degree(law, dynamics.root(law)), law.target @ law.a, rtol=1e-12)
    assert float(dynamics.root(made(target=5))) > 30, "no root: the end of the interval, or where both sides round alike"


@pytest.mark.slow
@pytest.mark.parametrize(("target", "bfs"), [pytest.param(5, False, marks=pytest.mark.slow), (4, True)])
def test_growth_of_the_solution(target, bfs, x64):
    law = made(target=target, bfs=bfs, free=0.0)
    path, _ = dynamics.solve(law)
    slope, factor = dynamics.growth(law)
    np.testing.assert_allclose((path[-1, 0] - path[-2, 0]) / np.log(10), slope, rtol=1e-3)
    np.testing.assert_allclose(path[-1, 0], slope * np.log(factor * 1e12), rtol=1e-3)
    np.testing.assert_allclose(slope, 3**0.5 / 3 if bfs else 3**0.5 / (3 - 2), rtol=1e-12)
    assert float(path[-1, 1]) == 0


@pytest.mark.slow
def test_bounded_solution(x64):
    law = made(target=4, free=0.0)
    path, _ = dynamics.solve(law)
    np.testing.assert_allclose(path[-1, 0], dynamics.root(law), atol=1e-12)
    short = dynamics.solve_short(law, jnp.asarray([0.0, 10.0, 100.0])).ys
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
            gap = float(dynamics.hull_gap(law))
            assert (gap > 1e-9) == (-margin.fun > 1e-9)
            signs.add(gap > 1e-9)
    assert signs == {True, False}


@pytest.mark.slow
def test_slope_of_the_largest_margin(x64):
    law = made(target=5)
    assert float(dynamics.hull_gap(law)) > 0
    x = np.stack([law.a, law.b], -1)
    difference = x[5] - np.delete(x, 5, 0)
    norm = lambda y: 7 * y[0] ** 2 + 42 * y[1] ** 2  # noqa: E731
    best = minimize(norm, [5.0, 0.0], constraints={"type": "ineq", "fun": lambda y: difference @ y - 1}, options={"ftol": 1e-14})
    np.testing.assert_allclose(dynamics.margin_slope(law), best.x[0], rtol=1e-5)
