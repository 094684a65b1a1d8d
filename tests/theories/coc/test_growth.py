"""Graphs of ProsQA grown in JAX: rules of growth, distances and paths by hand, and the statistics of the generator in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data import prosqa
from jaxdyn.theories.coc.growth import FORMS, STATISTICS, Rule, described, grow, searched

NAMES = dict(zip(STATISTICS, ("nodes", "edges", "length", "paths"), strict=True))


def rule(form, nodes=28.0):
    derived = float(form == "derived")
    return Rule(derived, nodes - 2 * (1 - derived), 1.5, 1.5)


@pytest.mark.parametrize("form", FORMS)
def test_labels_and_depths_follow_from_the_edges(form):
    with jax.enable_x64(True):
        grown = jax.vmap(lambda k: grow(k, rule(form, 20.0), 20))(jax.random.split(jax.random.key(3), 20))
    last = 20 if form == "derived" else 18
    for edges, label, depth in zip(*map(np.asarray, grown), strict=True):
        assert not np.tril(edges).any() and not edges[:, last:].any() and not edges[:, :2].any()
        assert np.all((label >= 0) == (np.arange(20) < last)) and label[:2].tolist() == [1, 2]
        for node in range(2, last):
            parents = np.flatnonzero(edges[:, node])
            assert label[node] == np.bitwise_or.reduce(label[parents], initial=0)
            assert depth[node] == (1 + depth[parents].min() if parents.size else 0)


def test_steps_and_paths_by_hand():
    edges = np.zeros((6, 6), bool)
    for a, b in ((0, 2), (0, 3), (2, 4), (3, 4), (1, 5), (0, 4)):
        edges[a, b] = True
    with jax.enable_x64(True):
        away, paths = searched(jnp.asarray(edges), 0)
        assert away.tolist() == [0, 6, 1, 1, 1, 6] and paths.tolist() == [1, 0, 1, 1, 1, 0]
        away, paths = searched(jnp.asarray(edges & ~(np.arange(6) == 4) | edges & (np.arange(6) > 0)[:, None]), 0)
        assert away.tolist() == [0, 6, 1, 1, 2, 6] and paths[4] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("form", "variant"), [("printed", "printed"), ("derived", "released")])
def test_statistics_are_those_of_the_generator(form, variant):
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 2000)
        numbers, taken = map(np.asarray, jax.jit(jax.vmap(lambda k: described(k, rule(form), 28)))(keys))
    theirs = prosqa.statistics(prosqa.draw(11, 600, variant))
    for column, name in enumerate(NAMES.values()):
        ours = numbers[taken, column]
        error = np.hypot(ours.std() / len(ours) ** 0.5, theirs[name].std() / 600**0.5)
        assert abs(ours.mean() - theirs[name].mean()) < 3.5 * error, name
    assert 0.2 < taken.mean() < 0.95
