"""Logits between entities against single inputs, z-scores against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.rev.mlt import logits, trial

AMONG, DIAGONAL_Z = map(jax.jit, (logits.among, logits.diagonal_z))


def test_maps_are_the_logits_of_single_entities(trained, x64):
    s, facts, run = trained
    net, words = trial.network(s), np.asarray(facts.words)[..., 0]

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
    z = np.asarray(DIAGONAL_Z(jnp.asarray(g)))
    for k in range(2):
        for i in range(6):
            rest = np.delete(g[k, i], i)
            assert z[k, i] == pytest.approx((g[k, i, i] - rest.mean()) / rest.std(), rel=1e-4)


def test_own_answers_among_those_of_their_kind():
    same = np.array([[True, True, True, False], [True, True, True, False], [True, True, True, False], [False, False, False, True]])
    scores = np.array([[3.0, 1, 2, 99], [5, 4, 4, 99], [0, 8, 1, 99], [9, 9, 9, 0]])
    wins, excess = AMONG(jnp.asarray(scores), jnp.asarray(same))
    assert float(wins) == pytest.approx((2 + 0.5 + 1) / 6)
    rest = [(scores[i, i], np.delete(scores[i, :3], i)) for i in range(3)]
    spread = np.sqrt(sum(((r - r.mean()) ** 2).sum() for _, r in rest) / 3)
    assert float(excess) == pytest.approx(np.mean([own - r.mean() for own, r in rest]) / spread, rel=1e-5)
    np.testing.assert_array_equal(logits.reassigned(jnp.asarray(same)), [1, 2, 0, 3])


def test_chance_is_one_half_and_zero():
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(4000, 6, 6)))
    same = jnp.asarray(np.equal.outer(np.arange(6) % 2, np.arange(6) % 2))
    wins, excess = AMONG(scores, same)
    assert abs(float(wins.mean()) - 0.5) < 0.01 and abs(float(excess.mean())) < 0.05
    assert abs(float(AMONG(scores[:, logits.reassigned(same)], same)[0].mean()) - 0.5) < 0.01


def test_held_out_directions():
    maps = jnp.asarray(np.random.default_rng(1).normal(size=(2, 2, 5, 5)))
    blocks, same = logits.held_out(maps, jnp.array([True, False]), "reversal")
    np.testing.assert_array_equal(blocks[0, :, 0], maps[:, 1, 3, 3:])  # known as A to B: asked for its A
    np.testing.assert_array_equal(blocks[0, :, 1], maps[:, 0, 4, 3:])
    np.testing.assert_array_equal(blocks[1, :, 0], maps[:, 0, 3, 3:])
    np.testing.assert_array_equal(same, np.eye(2, dtype=bool))
