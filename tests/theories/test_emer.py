"""Emergence of superposition: layers, instances, short searches, and settings that are refused."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.status import OK
from jaxdyn.theories.emer import instances, longtime, model
from jaxdyn.theories.emer.direction import Reply
from jaxdyn.theories.emer.search_flow import SearchFlow, off_structure
from jaxdyn.theories.emer.search_sgd import SearchSgd, trial

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
        case = instances.sample(jax.random.key(seed), 7, 3.0, 1.0, 0.4, jd.Code.of(target, instances.TARGETS))
        thought, edges = np.asarray(case.thought), np.asarray(case.edges)
        np.testing.assert_allclose(thought, [3**-0.5] * 3 + [0] * 4)
        assert set(np.unique(edges)) <= {0, 1} and not edges.diagonal().any()
        assert edges[:3, 3:].sum(0).tolist() == [1, 2, 3, 0]
        assert np.argmax(case.target) == place and edges[:3, place].sum() == degree
        assert np.asarray(case.reached).tolist() == [v < 3 or bool(edges[:3, v].any()) for v in range(7)]


def test_renamed_instances_are_the_same_graph(x64):
    case = instances.sample(jax.random.key(1), 7, 3.0, 2.0, 0.4, jd.Code.of("top", instances.TARGETS))
    order = np.asarray(model.relabellings(7))[10]
    other = instances.renamed(case, order)
    for v in range(7):
        assert other.thought[v] == case.thought[order[v]] and bool(other.reached[v]) == bool(case.reached[order[v]])
        for u in range(7):
            assert other.edges[u, v] == case.edges[order[u], order[v]]


def test_random_digraphs(x64):
    key = jax.random.key(0)
    assert float(instances.random_digraph(key, 6, 0.0).sum()) == 0
    assert float(instances.random_digraph(key, 6, 1.0).sum()) == 30


# Flows to t = 1e12 with a closed form: logarithmic growth, and a limit.


def test_growth_and_limit(x64):
    def field(t, y, rate):
        return {"grows": rate * jnp.exp(-y["grows"]), "settles": rate * (1 - jnp.exp(y["settles"] - 2))}

    ys, status = longtime.solve(field, {"grows": jnp.zeros(3), "settles": jnp.float64(0)}, jnp.float64(0.5))
    assert int(status) == OK and ys["grows"].shape == (13, 3) and longtime.TIMES[-1] == 1e12
    np.testing.assert_allclose(ys["grows"][:, 1], np.log1p(0.5 * np.asarray(longtime.TIMES)), atol=2e-4)
    np.testing.assert_allclose(ys["settles"][4:], 2.0, atol=1e-10)
    assert longtime.DECADE == np.log(10)


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
    ds = jd.sweep(trial, grid, 2)
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
