"""Generator of Table 1 against Python sets."""

import jax
import numpy as np
import pytest

from jaxdyn.theories.joma.experiments.table1 import data


@pytest.mark.parametrize(("classes", "members", "latents"), [(20, 2, (10, 20)), (30, 3, (20, 30)), (3, 1, (3, 3)), (6, 2, (4, 6))])
def test_sequences_are_the_unions_of_their_sets(classes, members, latents):
    layers = jax.jit(data.sample_layers, static_argnums=(1, 2, 3))(jax.random.key(3), classes, latents, members)
    top, mid, low = ([set(np.flatnonzero(row).tolist()) for row in np.asarray(layer)] for layer in layers)
    for sets, count in ((top, classes), (mid, latents[1]), (low, latents[0])):
        assert len(sets) == count == len({frozenset(s) for s in sets})
        assert {len(s) for s in sets} == {members}
    lower, upper = (np.asarray(a) for a in jax.jit(data.activity)(layers))
    for c, row in enumerate(np.asarray(jax.jit(data.sequences)(layers))):
        latent = set().union(*(mid[j] for j in top[c]))
        tokens = sorted(set().union(*(low[i] for i in latent)))
        assert row.tolist() == [data.PAD] * (data.LENGTH - len(tokens)) + tokens
        assert set(np.flatnonzero(lower[c])) == latent and set(np.flatnonzero(upper[c])) == top[c]
        assert len(tokens) <= data.longest(latents, members)


def test_subsets_are_uniform():
    draws = jax.jit(jax.vmap(lambda k: data.subsets(k, 3, 5, 2)))(jax.random.split(jax.random.key(0), 2000))
    codes = np.asarray(draws) @ 2 ** np.arange(5)
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == 10
    assert np.abs(counts - 600).max() < 5 * 600**0.5
