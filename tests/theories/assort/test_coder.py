"""Training of the autoencoder: chunks come from traces, codes say something, and settings are checked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import vq
from jaxdyn.theories.assort.coder import Coding, begun, fitted, pieces, problems, recode, restored

SMALL = Coding(height=2, codes=30, vq_steps=250.0)


def test_pieces_are_chunks_of_traces_of_their_prompts():
    chunk, prompt = jax.jit(lambda key: pieces(SMALL, key, 20))(jax.random.key(0))
    for (source, target), row in zip(np.asarray(chunk), np.asarray(prompt), strict=True):
        assert row[1 + source] == target  # with one child, the prompt lists it at its parent's place


def test_a_code_stands_for_a_sentence():
    s = Coding(sentences=True, rate=8, codes=16)
    f = s.forest()
    chunk, prompt = (np.asarray(x) for x in jax.jit(lambda key: pieces(s, key, 20))(jax.random.key(0)))
    assert f.trace == 32 and (chunk[:, 0] == f.word("take")).all() and (chunk[:, -1] == f.word(".")).all()
    np.testing.assert_array_equal(prompt[np.arange(20), 1 + chunk[:, 1]], chunk[:, 4])


@pytest.mark.parametrize("book", ["gradient", "averages"])
@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_trained_codes_restore_what_untrained_ones_do_not(book):
    s = Coding(book=book, height=2, codes=30, vq_steps=250.0)
    key = jax.random.key(1)
    held = problems(s, jax.random.key(2), 64)
    shares = {}
    for name, coder in (("before", begun(s, jax.random.split(key)[0])), ("after", jax.jit(lambda k: fitted(s, k))(key))):
        codes = recode(s, coder, held.trace)
        assert codes.shape == (64, 2) and int(codes.max()) < 30
        shares[name] = float(restored(s, coder, held.trace, held.prompt, codes).mean())
    assert shares["after"] > 0.7 > 0.5 > shares["before"]


def test_equal_chunks_have_equal_codes():
    coder = jax.jit(lambda key: vq.init(SMALL.chunks(), key))(jax.random.key(0))
    codes = jax.jit(lambda coder: recode(SMALL, coder, jnp.array([[1, 2, 1, 2]])))(coder)
    assert int(codes[0, 0]) == int(codes[0, 1])


@pytest.mark.parametrize("wrong", [{"rate": 3}, {"codes": 0}, {"height": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Coding(**wrong)
