"""Cosines against NumPy, orthonormal vectors, random ones, and a common mean."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.orth import instrument as orthogonality
from jaxdyn.theories.orth.instrument import ORTHOGONALITY, measure, rows
from tests.instruments import plain
from tests.nn.drawn import weights


def cosine(x):
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    c = np.abs(u @ u.T)
    return (c.sum() - np.trace(c)) / (len(x) * (len(x) - 1))


def test_cosines_are_those_of_plain_numpy():
    one = plain.model()
    ds = measure(one, plain.TOKENS, plain.nothing)
    seen, _ = plain.pieces_of(plain.SHAPE, one.params, plain.TOKENS)
    for i, piece in enumerate(plain.TOKENS):
        first = np.sort(np.unique(piece, return_index=True)[1])
        first = first[first > 0]
        assert int(ds.words[i]) == len(first)
        streams = [np.asarray(one.params["embed"])[piece], *seen["after"][i]]
        for depth, x in enumerate(streams):
            assert float(ds.raw[i, depth]) == pytest.approx(cosine(x[first]), rel=1e-4)
            assert float(ds.centred[i, depth]) == pytest.approx(cosine(x[first] - x[first].mean(0)), rel=1e-4)
    for block in range(2):
        assert float(ds.written[block]) == pytest.approx(cosine(np.asarray(one.params["blocks"]["down"][block])), rel=1e-4)


def embedded(table):
    """A network with these embeddings, whose blocks add nothing."""
    shape = plain.changed(vocabulary=len(table), width=table.shape[1], heads=2, groups=None, head_size=4)
    params = weights(shape)
    blocks = params["blocks"] | {name: 0 * params["blocks"][name] for name in ("o", "down")}
    return plain.model(shape, params | {"embed": table.astype(np.float32), "blocks": blocks})


def test_orthonormal_embeddings():
    tokens = np.random.default_rng(0).integers(0, 16, (2, 40))
    ds = measure(embedded(np.eye(16)), tokens, plain.nothing)
    np.testing.assert_allclose(ds.raw, 0, atol=1e-6)
    assert float(ds.centred.min()) > 0.03  # without their mean, no k vectors are orthogonal


@pytest.mark.slow
def test_random_embeddings_have_what_is_predicted_and_a_common_mean_hides_it():
    rng = np.random.default_rng(0)
    tokens, table = rng.integers(0, 400, (3, 300)), rng.normal(size=(400, 64))
    ds = measure(embedded(table), tokens, plain.nothing)
    law = ORTHOGONALITY.predict(ds)
    np.testing.assert_allclose(ds.raw, law.exact, rtol=0.02)
    assert float(law.printed) == pytest.approx((2 / (np.pi * 64)) ** 0.5) and float(law.printed) < float(law.exact)
    moved = measure(embedded(table + 2), tokens, plain.nothing)
    assert float(moved.raw.min()) > 0.7
    np.testing.assert_allclose(moved.centred, law.exact, rtol=0.02)


def test_units_that_write_nothing_are_left_out():
    """A pruned MLP is no more orthogonal than one that never had these units."""
    own = np.random.default_rng(0).normal(size=(2, 10, 12)).astype(np.float32)
    own[:, 3:7] = 0
    shape = plain.changed()
    params = weights(shape)
    found = rows(shape, params | {"blocks": params["blocks"] | {"down": own}})
    kept = np.delete(own, range(3, 7), 1)
    u = kept / np.linalg.norm(kept, axis=-1, keepdims=True)
    expected = (np.abs(u @ u.transpose(0, 2, 1)).sum((1, 2)) - 6) / 30
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_vectors_of_zero_length_have_no_direction(scale):
    x = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
    x[::2] = 0
    found = float(orthogonality.cosine(jnp.asarray(scale * x), jnp.ones(64, bool)))
    assert found == pytest.approx(cosine(x[1::2]), rel=1e-5)
    where = np.arange(64) < 40
    assert float(orthogonality.cosine(jnp.asarray(x), jnp.asarray(where))) == pytest.approx(cosine(x[1:40:2]), rel=1e-5)


@pytest.mark.parametrize("centred", [False, True])
def test_without_two_directions_there_is_no_cosine(centred):
    one = np.zeros((8, 5), np.float32)
    one[3] = 1
    everywhere = jnp.ones(8, bool)
    assert np.isnan(float(orthogonality.cosine(jnp.asarray(0 * one), everywhere, centred)))
    assert np.isnan(float(orthogonality.cosine(jnp.asarray(one), everywhere)))
    same = jnp.asarray(np.tile(np.float32([0.1, 0.7, 1 / 3, 5.1, 2.3]), (300, 1)))  # what is left of these is rounding
    assert np.isnan(float(orthogonality.cosine(same, jnp.ones(300, bool), True)))
    assert float(orthogonality.cosine(same, jnp.ones(300, bool))) == pytest.approx(1, rel=1e-5)


def test_not_a_number_is_not_left_out():
    x = np.ones((4, 5), np.float32)
    x[2, 1] = np.nan
    assert np.isnan(float(orthogonality.cosine(jnp.asarray(x), jnp.ones(4, bool))))


def test_embeddings_of_zero_are_shown_without_a_value():
    tokens = np.random.default_rng(0).integers(0, 16, (2, 40))
    ds = measure(embedded(np.zeros((16, 16))), tokens, plain.nothing)
    shown = ORTHOGONALITY.numbers(ds)[0]
    assert shown.name == "embeddings of different tokens, in 0 of 2 pieces" and np.isnan(shown.value)
    half = np.random.default_rng(1).normal(size=(16, 16))
    half[:8] = 0
    ds = measure(embedded(half), tokens, plain.nothing)
    first = [np.sort(np.unique(piece[1:])) for piece in tokens]  # a piece's first place is left out, its word may come again
    for i, words in enumerate(first):
        words = words[(words > 7) & (words != tokens[i][0])]
        assert float(ds.raw[i, 0]) == pytest.approx(cosine(half[words]), rel=1e-4)
