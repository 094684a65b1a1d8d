"""The weights: published sizes of their numbers, rotations of positions, prompts, and blocks of fewer numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.sup import construction, model

SIZES = construction.Sizes(names=8, edges=9, thoughts=3, width=6)

# One program each: by itself every operation would be compiled.
build, prompt = jax.jit(construction.build, static_argnums=0), jax.jit(construction.prompt, static_argnums=0)
orthogonal = jax.jit(construction.orthogonal, static_argnums=1)


@pytest.mark.slow
def test_numbers_of_the_published_size(x64):
    knobs = construction.safe(construction.Sizes(names=23, edges=36, thoughts=22, width=32))
    assert construction.Sizes(names=23, edges=36, thoughts=22, width=32).places == 137
    assert float(knobs.eta) == pytest.approx(39, abs=0.5) and float(knobs.xi) == pytest.approx(282, abs=1)
    assert float(knobs.tau) == pytest.approx(161, abs=0.5)
    turned = construction.safe(SIZES, model.Rotary(jnp.asarray(50.0), jnp.asarray(1.0)))
    assert float(turned.xi) > float(construction.safe(SIZES).xi)


def test_the_rotation_moves_positions_on(x64):
    rates = construction.position_rates(SIZES, "float64")
    at = np.asarray(construction.sinusoids(jnp.arange(1.0, 9.0), rates))
    rotation = jax.jit(construction.rotation)
    for places in (1, 2, 5):
        np.testing.assert_allclose(at[:-places] @ np.asarray(rotation(rates, places)), at[places:], atol=1e-12)


def test_a_prompt():
    edges = np.array([[0, 1], [1, 2]] * 4 + [[5, 6]])
    tokens = prompt(SIZES, edges, np.array([2, 6]), np.asarray(0)).tolist()
    s, e, q, r, a = range(8, 13)
    assert tokens[:7] == [s, 0, 1, e, 1, 2, e] and tokens[-8:] == [5, 6, e, q, 2, 6, r, 0] and a not in tokens
    assert len(tokens) == SIZES.prompt == 33 and SIZES.places == 37


def test_weights_of_layers(x64):
    u = np.asarray(orthogonal(jax.random.key(0), SIZES.tokens))
    np.testing.assert_allclose(u.T @ u, np.eye(13), atol=1e-12)
    params = jax.device_get(build(SIZES, u, construction.safe(SIZES)))
    first, second = params.layers
    d = 3 * 13 + 6
    assert first.query.shape == (5, d, 12) and second.query.shape == (1, d, 13) and params.embed.shape == (13, d)
    assert not np.any(params.position[:, :39]) and not np.any(params.embed[:, 13:])
    np.testing.assert_allclose((params.embed @ first.value[0])[8], 0, atol=1e-12)  # the start's token copies nothing
    assert first.rotary is None


def test_fewer_numbers_as_zeros_and_as_a_smaller_matrix(x64):
    u = np.asarray(jax.jit(construction.narrow)(np.random.default_rng(1).normal(size=(13, 13)), np.asarray(7.0)))
    np.testing.assert_allclose(np.linalg.norm(u, axis=0), 1)
    knobs = construction.safe(SIZES)
    tokens = prompt(SIZES, np.array([[0, 1], [1, 2]] * 4 + [[5, 6]]), np.array([2, 6]), np.asarray(0))

    @jax.jit
    def logits(matrix):
        params = construction.build(SIZES, matrix, knobs)
        x = model.inputs(params, params.embed[tokens], jnp.arange(SIZES.prompt))
        return model.forward(params, x)[0][-1] @ params.head

    decoded = [logits(matrix) for matrix in (u, u[:7])]
    np.testing.assert_allclose(decoded[0], decoded[1], atol=1e-9)
