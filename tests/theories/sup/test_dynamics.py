"""Reachable sets and copies."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.data import digraphs
from jaxdyn.theories.sup import construction
from jaxdyn.theories.sup.dynamics import copies, sets

# Outputs of layer 1 and the places of its heads, by hand on one edge list.

SIZES = construction.Sizes(names=6, edges=9, thoughts=2, width=4)


S, E, Q, R, A = range(6, 11)


def test_places_and_outputs(x64):
    prompt = jax.jit(construction.prompt, static_argnums=0)
    tokens = prompt(SIZES, np.array([[0, 1], [1, 2]] + [[3, 4]] * 7), np.array([2, 4]), np.asarray(0))
    places = np.asarray(jax.jit(copies.places, static_argnums=0)(SIZES, tokens))
    listed = [*np.asarray(tokens).tolist(), -1, -1, A]
    for head, (token, back) in enumerate(((E, 2), (E, 1), (R, 2), (R, 1), (A, 1))):
        assert places[head].tolist() == [i - back if t == token else 0 for i, t in enumerate(listed)]
    held = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]], bool)
    out = np.asarray(jax.jit(copies.outputs, static_argnums=0)(SIZES, tokens, held))
    np.testing.assert_allclose(np.sum(out**2, (1, 2)), 1)
    third = 3**-0.5
    assert np.argwhere(out[3]).tolist() == [[0, E], [1, 0], [2, 1]] and np.allclose(out[3][out[3] > 0], third)
    assert np.argwhere(out[SIZES.prompt - 2]).tolist() == [[0, R], [2, 2], [2, 4]]
    assert np.argwhere(out[SIZES.prompt]).tolist() == [[0, 0], [0, 1]]
    assert np.argwhere(out[-1]).tolist() == [[0, A], [1, 0], [1, 1], [1, 2]] and np.allclose(out[-1][out[-1] > 0], 0.5)
    assert np.argwhere(out[1]).tolist() == [[0, 0]]


# Sets by weights against breadth-first search and counts by hand.

by_weights = jax.jit(sets.by_weights, static_argnums=(3, 4))  # as one program: by itself every operation would be compiled


def test_a_small_threshold_gives_breadth_first_search(x64):
    rng = np.random.default_rng(0)
    for _ in range(30):
        edges = rng.integers(0, 12, (14, 2))
        root = int(edges[0, 0])
        found = np.asarray(by_weights(edges, root, np.array([1, 2]), 12, 5, 1 / 56))
        away = digraphs.distances(edges, root)
        for c in range(6):
            assert set(np.flatnonzero(found[c]).tolist()) == {v for v, d in away.items() if d <= c}


def test_a_vertex_below_the_threshold_is_lost(x64):
    edges = jnp.array([[0, 1]] * 9 + [[0, 2]])  # vertex 2 has a tenth of the edges
    for threshold, kept in ((0.9 / 10 / 3**0.5, True), (1.1 / 10 / 3**0.5, False)):
        found = by_weights(edges, jnp.asarray(0), jnp.array([1, 2]), 4, 1, jnp.asarray(threshold))
        assert bool(found[1, 2]) is kept and bool(found[1, 1])


def test_without_an_exit_attention_is_uniform(x64):
    edges = jnp.array([[1, 2]] * 3 + [[3, 4]])  # 3 edges into 2, one into 4; 18 places; candidates 4 and 5
    for count, kept in ((0.99, [0, 2, 4, 5]), (1.01, [0, 2, 4]), (1.99, [0, 2, 4]), (2.01, [0, 2]), (2.99, [0, 2])):
        found = by_weights(edges, jnp.asarray(0), jnp.array([4, 5]), 6, 1, jnp.asarray(count / 18 / 3**0.5))
        assert np.flatnonzero(found[1]).tolist() == kept
    found = by_weights(edges, jnp.asarray(0), jnp.array([4, 5]), 6, 4, jnp.asarray(3.1 / 18 / 3**0.5))
    assert all(np.flatnonzero(row).tolist() == [0] for row in found)  # each thought is one more place: 18, 19, 20, 21


def test_without_an_exit_edges_into_the_root_do_not_count(x64):
    into, others = [[v, 0] for v in range(1, 8)], [[3, 4], [4, 5]]  # 9 edges, 8 vertices
    for more, kept in (([], [0]), ([[6, 5]], [0, 5])):
        edges = jnp.array(into + others + more)
        found = by_weights(edges, jnp.asarray(0), jnp.array([1, 2]), 8, 1, jnp.asarray(1 / (4 * len(edges))))
        assert np.flatnonzero(found[1]).tolist() == kept


def test_thoughts_and_margins(x64):
    held = jnp.array([[True, False, False, False], [True, True, True, True]])
    np.testing.assert_allclose(sets.thoughts(held, 6), [[1, 0, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(sets.margins(held, jnp.asarray(2)), [0, 1 / 3])
