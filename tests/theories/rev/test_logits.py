"""Logits between entities against single inputs, z-scores against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.rev import logits
from jaxdyn.theories.rev.trials import transformer as runs


def test_maps_are_the_logits_of_single_entities(trained, x64):
    s, facts, run = trained
    net, words = runs.network(s), np.asarray(facts.words)[..., 0]

    @jax.jit
    def read(params):
        alone = net.apply(params, jnp.asarray(words[1][:, None], jnp.int32))[:, 0]
        asked = net.apply(params, jnp.array([[words[0][2], s.vocabulary + 1]], jnp.int32))[0, 1]
        maps = logits.heat_maps(net, params, facts, "cot", s.vocabulary)
        return maps, alone, asked, logits.cosines(params, facts)

    maps, alone, asked, cosines = jax.tree.map(np.asarray, read(run.params))
    np.testing.assert_allclose(maps[0, 1], alone[:, words[2]], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(maps[1, 2, 2], asked[words[2]], rtol=1e-4, atol=1e-6)
    a, b = (np.asarray(run.params["embed"])[words[i]] for i in (0, 1))
    assert cosines[1, 3] == pytest.approx(a[1] @ b[3] / np.linalg.norm(a[1]) / np.linalg.norm(b[3]), rel=1e-4)


def test_z_is_the_distance_of_the_diagonal_in_standard_deviations_of_its_row():
    g = np.random.default_rng(2).normal(size=(2, 6, 6))
    z = np.asarray(logits.diagonal_z(jnp.asarray(g)))
    for k in range(2):
        for i in range(6):
            rest = np.delete(g[k, i], i)
            assert z[k, i] == pytest.approx((g[k, i, i] - rest.mean()) / rest.std(), rel=1e-4)
