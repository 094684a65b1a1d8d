"""Number tokens: planted waves, random embeddings, tokenizers with and without numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.instruments.instrument import NotApplicable
from jaxdyn.models.loading import Model
from jaxdyn.models.tokenizer import Tokenizer
from jaxdyn.theories.sln.instrument import NAVIGATORS, PERIODS, heights, measure, number_tokens, periods, spectrum
from tests.instruments import plain
from tests.models.hugging import needs_models
from tests.nn.drawn import weights


def model(words, embed=None):
    shape = plain.changed(vocabulary=len(words))
    params = weights(shape)
    return Model(shape, params if embed is None else params | {"embed": embed}, Tokenizer(plain.Words(words)), None)


def test_planted_waves_are_found():
    a, rng = np.arange(200)[:, None], np.random.default_rng(0)
    embed = 0.3 * rng.normal(size=(201, 12))
    embed[1:, :2] += np.concatenate([np.cos(2 * np.pi * a / 10), np.sin(2 * np.pi * a / 10)], 1)
    embed[1:, 2:3] += np.cos(np.pi * a)
    ds = measure(model(["<s>", *map(str, range(200))], embed), None, plain.nothing)
    law = NAVIGATORS.predict(ds)
    found = ds.height > law.high
    assert ds.attrs["numbers"] == 200 and found.sel(period=10) and found.sel(period=2)
    assert float(ds.height.sel(period=10)) > 10 and float(ds.height.sel(period=5)) < 4
    assert float(ds.frequency[np.argmax(ds.power.values)]) in (0.1, 0.5)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(10, 100), st.sampled_from(PERIODS), st.sampled_from(PERIODS))
def test_each_period_is_a_frequency_of_its_own(tens, planted, other):
    """However many numbers there are: a wave of a period that is looked at has power there, and at no other frequency."""
    count = 10 * tens
    assert periods(count) == [*PERIODS[:4], *([100.0] if count % 100 == 0 else [])]
    a, at = np.arange(count)[:, None], round(count / planted) - 1
    power = spectrum(np.concatenate([np.cos(2 * np.pi * a / planted), np.sin(2 * np.pi * a / planted)], 1))
    if planted in periods(count):
        assert np.delete(power, at).max() < 1e-12 * power[at]
        found = dict(zip(periods(count), heights(power + 1, count), strict=True))
        assert found[planted] == pytest.approx(power[at] + 1) and (other == planted or found.get(other, 1) == pytest.approx(1))


def test_random_embeddings_have_none():
    high = 0
    for seed in range(10):
        embed = np.random.default_rng(seed).normal(size=(100, 12))
        ds = measure(model([f" {i}" for i in range(100)], embed), None, plain.nothing)
        high += int((ds.height > NAVIGATORS.predict(ds).high).sum())
    assert high <= 4  # of 50, each with probability 1%


@pytest.mark.parametrize("value", [np.nan, np.inf, "all the same"], ids=str)
def test_embeddings_without_a_spectrum(value):
    embed = np.random.default_rng(0).normal(size=(100, 12))
    embed[slice(None) if value == "all the same" else 7] = 1.0 if value == "all the same" else value
    with pytest.raises(NotApplicable, match="The embeddings of the numbers are not finite, or all the same"):
        measure(model([f" {i}" for i in range(100)], embed), None, plain.nothing)


def test_the_longer_run_of_numbers_is_taken():
    words = ["<s>", *(f" {i}" for i in range(127)), *map(str, range(105))]
    np.testing.assert_array_equal(number_tokens(Tokenizer(plain.Words(words))), np.arange(1, 121))


def test_numbers_beyond_the_embeddings_end_a_run():
    words = ["<s>", *map(str, range(105))]
    np.testing.assert_array_equal(number_tokens(Tokenizer(plain.Words(words), rows=57)), np.arange(1, 51))


def test_a_tokenizer_of_digits_is_no_use():
    with pytest.raises(NotApplicable, match="only for the first 10: it splits numbers into digits"):
        measure(model(["<s>", *"0123456789"]), None, plain.nothing)
    with pytest.raises(NotApplicable, match="no tokenizer"):
        measure(plain.model(), None, plain.nothing)


def test_the_power_of_a_wave():
    a = np.arange(100)[:, None]
    power = spectrum(np.cos(2 * np.pi * a / 5) + 3)
    assert power[19] == pytest.approx(50) and np.delete(power, 19).max() < 1e-9
    assert heights(power + 1, 100)[2] == pytest.approx(51)


@needs_models
def test_a_real_tokenizer():
    import tokenizers

    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0} | {str(i): i + 1 for i in range(300)}, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    assert number_tokens(Tokenizer(inner)).tolist()[:3] == [1, 2, 3]
