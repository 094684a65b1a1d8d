"""Sequences that remember, and the judge of long sequences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.snap.claims import length
from tests.theories.snap.helpers import passes


def test_prefix_counts_remember(x64):
    p = jnp.asarray([0.2, 0.3, 0.5])
    for memory in (0.0, 0.6, 1.0):
        counts = np.asarray(length.prefix_counts(jax.random.key(1), p, jnp.float64(memory), 4000, (1, 2, 8)))
        assert np.array_equal(counts.sum(-1), np.broadcast_to([[1], [2], [8]], (3, 4000)))
        assert np.all(np.diff(counts, axis=0) >= 0)
        assert np.allclose(counts[2].mean(0) / 8, p, atol=0.04)
        same = np.mean(counts[1].max(1) == 2)
        assert same == pytest.approx(memory + (1 - memory) * float((p**2).sum()), abs=4 * 0.5 / np.sqrt(4000))


def test_judge_of_the_length():
    grid = jd.grid(length.Context, memory=[0.0, 0.9, 1.0], logits=1.0, longest=12, sequences=128)
    ds = jd.sweep(length.trial, grid, seeds=16)
    good = ds.sel(memory=0.0)
    assert passes(length.judge, good)
    assert not passes(length.judge, ds.sel(memory=0.9)) and not passes(length.judge, ds.sel(memory=1.0))
    assert not passes(length.judge, good.assign(predicted_spread=1.1 * good.predicted_spread))
    assert not passes(length.judge, length.one_over_length(good))


def test_given_weights_are_the_law(x64):
    run = length.trial(length.Context(tokens=3, weights=(1.0, 1.0, 2.0), logits=0.0, longest=6), jax.random.key(0))
    level = np.sqrt((1 - 2 * 0.25**2 - 0.5**2) / 2.0 ** np.arange(4, 7))  # uniform attention: that of a multinomial
    np.testing.assert_allclose(run.predicted["spread"].value, level)


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="probability"):
        length.Context(memory=1.5)
    with pytest.raises(jd.UsageError, match="three lengths"):
        length.Context(longest=5)
    with pytest.raises(jd.UsageError, match="8 positive numbers"):
        length.Context(weights=(1.0,))
