"""Sequences that remember, and the judge of long sequences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap.gradient import limit


def test_prefix_counts_remember(x64):
    p = jnp.asarray([0.2, 0.3, 0.5])
    for memory in (0.0, 0.6, 1.0):
        counts = np.asarray(limit.prefix_counts(jax.random.key(1), p, jnp.float64(memory), 4000, (1, 2, 8)))
        assert np.array_equal(counts.sum(-1), np.broadcast_to([[1], [2], [8]], (3, 4000)))
        assert np.all(np.diff(counts, axis=0) >= 0)
        assert np.allclose(counts[2].mean(0) / 8, p, atol=0.04)
        same = np.mean(counts[1].max(1) == 2)
        assert same == pytest.approx(memory + (1 - memory) * float((p**2).sum()), abs=4 * 0.5 / np.sqrt(4000))


def planted(power=-0.5, level=1.0, spread=0.0):
    """Sixteen runs whose mean square distance is a multiple of the leading order at T = 256, and falls with a power of T."""
    rng = np.random.default_rng(0)
    t = 2.0 ** np.arange(4, 13)
    measured = np.sqrt(level) / 16 * (t / 256) ** power * (1 + 0.02 * rng.normal(size=(16, 9)))
    measured *= 1 + spread * np.resize([1, -1], (16, 1))
    data = {"predicted_spread": t**-0.5 + 0 * measured, "measured_spread": measured}
    return xr.Dataset({k: (("seed", "length"), v) for k, v in data.items()}, coords={"length": t})


def test_judge_of_the_length():
    outcome = lambda ds: [c.passed for c in limit.judge(ds)]  # noqa: E731
    assert outcome(planted()) == [True] * 3
    assert outcome(planted(power=-0.6))[0] is False
    assert outcome(planted(level=1.2)) == [True, False, True]
    assert outcome(planted(spread=0.2))[2] is False
    assert outcome(limit.ONE_OVER_LENGTH(planted()))[:2] == [False, False]


def test_distance_of_sequences_is_the_predicted_one():
    grid = jd.grid(limit.Context, memory=[0.0, 0.9], logits=1.0, shortest=6, longest=8)
    ds = jd.sweep(limit.trial, grid, seeds=4)
    level = ((ds.measured_spread / ds.predicted_spread) ** 2).mean(["seed", "length"])
    assert 0.8 < float(level.sel(memory=0.0)) < 1.25
    assert 12 < float(level.sel(memory=0.9)) < 22, "(1 + memory) / (1 - memory) times the variance, but for short sequences"


def test_given_weights_are_the_law(x64):
    run = limit.trial(limit.Context(tokens=3, weights=(1.0, 1.0, 2.0), logits=0.0, longest=6), jax.random.key(0))
    level = np.sqrt((1 - 2 * 0.25**2 - 0.5**2) / 2.0 ** np.arange(4, 7))  # uniform attention: that of a multinomial
    np.testing.assert_allclose(run.predicted["spread"].value, level)


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="three lengths"):
        limit.Context(longest=5)
    with pytest.raises(jd.UsageError, match="8 positive numbers"):
        limit.Context(weights=(1.0,))
