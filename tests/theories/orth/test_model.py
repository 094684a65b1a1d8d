"""Probed words, groups of vectors and their spread against NumPy."""

import jax
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.text import language
from jaxdyn.theories.orth import model
from jaxdyn.theories.orth.trained import Watched

SIZES = {"width": 32, "vectors": 20, "layers": 1, "max_words": 60}
TINY = {**SIZES, "columns": 2, "length": 16, "steps": 2, "every": 1, "text": "markov"}


@pytest.mark.parametrize("n", [5, 12])
def test_spread_is_that_of_the_gram_matrix(x64, n):
    x = np.random.default_rng(n).normal(size=(n, 8))
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    gram = u @ u.T
    pairs = np.abs(gram[~np.eye(n, dtype=bool)])
    found = jax.jit(model.spread)(x)
    np.testing.assert_allclose(found.mean, pairs.mean(), rtol=1e-11)
    np.testing.assert_allclose(found.rms, np.sqrt((pairs**2).mean()), rtol=1e-11)
    np.testing.assert_allclose(found.high, np.quantile(pairs, model.LEVEL, method="nearest"), rtol=1e-11)
    np.testing.assert_allclose(found.top, np.linalg.eigvalsh(gram)[-1] / n, rtol=1e-10)
    np.testing.assert_allclose(found.gram, np.linalg.norm(gram - np.eye(n)), rtol=1e-10)


def test_probe_finds_every_word_where_it_first_stands():
    stream = np.array([4, 4, 1, 4, 0, 1, 7, 4, 2, 9], np.int32)
    found = model.probe(stream, 3, 4)
    assert found.places.tolist() == [0, 2, 4, 6] and found.words.tolist() == [4, 1, 0, 7]
    assert found.tokens.tolist() == [[4, 4, 1], [4, 0, 1], [7, 4, 2]]
    with pytest.raises(UsageError, match="vectors=6 is not allowed: .* has 5 different words"):
        model.probe(stream, 3, 6)


@pytest.mark.slow
def test_groups_are_rows_of_the_weights_and_of_the_streams(x64):
    s = Watched(**TINY)
    net = nn.network(s.shape(61))
    params = jax.tree.map(lambda a: np.random.default_rng(a.size).normal(size=a.shape), jax.eval_shape(net.init, jax.random.key(0)))
    probed = model.probe(s.text_run().corpus().valid, s.length, s.vectors)
    found, loss = jax.tree.map(np.asarray, jax.jit(lambda p: model.groups(net, p, probed))(params))
    expected = jax.jit(lambda p: language.loss(net, p, probed.tokens[:, :-1], probed.tokens[:, 1:]))(params)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    named = dict(zip(model.names(1), found, strict=True))
    np.testing.assert_allclose(named["embedding"], params["embed"][probed.words])
    np.testing.assert_allclose(named["written 0"], params["blocks"]["down"][0][:20])
    i = np.arange(0, 32, 2)
    place = probed.places[:, None] % s.length / 10_000 ** (i / 32)
    waves = np.stack([np.sin(place), np.cos(place)], -1).reshape(20, 32)
    np.testing.assert_allclose(named["input 0"], np.sqrt(32) * params["embed"][probed.words] + waves, rtol=1e-6, atol=1e-6)
    for layer in (0, 1):
        raw = named[f"input {layer}"]
        np.testing.assert_allclose(named[f"centred {layer}"], raw - raw.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(named["input 1"].mean(1), params["blocks"]["mlp_norm_bias"][0].mean(), atol=3)
