"""Number tokens: planted waves, random embeddings, tokenizers with and without numbers."""

import numpy as np
import pytest

from jaxdyn.models.instruments.instrument import NotApplicable
from jaxdyn.models.instruments.navigators import NAVIGATORS, heights, measure, number_tokens, spectrum
from jaxdyn.models.loading import Model
from jaxdyn.models.tokenizer import Tokenizer
from tests.models.hugging import needs_models
from tests.models.instruments import plain
from tests.nn.drawn import weights


class Words:
    """A tokenizer of whole words; what it does not know, it spells in letters."""

    def __init__(self, words):
        self.words = {word: i for i, word in enumerate(words)}

    def encode(self, text, add_special_tokens=True):
        ids = [self.words[text]] if text in self.words else [self.words.get(c, 0) for c in text]
        return type("Encoding", (), {"ids": ids})()

    def token_to_id(self, token):
        return self.words.get(token)

    def id_to_token(self, number):
        return list(self.words)[number]


def model(words, embed=None):
    shape = plain.changed(vocabulary=len(words))
    params = weights(shape)
    return Model(shape, params if embed is None else params | {"embed": embed}, Tokenizer(Words(words)), None)


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


def test_random_embeddings_have_none():
    high = 0
    for seed in range(10):
        embed = np.random.default_rng(seed).normal(size=(100, 12))
        ds = measure(model([f" {i}" for i in range(100)], embed), None, plain.nothing)
        high += int((ds.height > NAVIGATORS.predict(ds).high).sum())
    assert high <= 4  # of 50, each with probability 1%


def test_the_longer_run_of_numbers_is_taken():
    words = ["<s>", *(f" {i}" for i in range(127)), *map(str, range(105))]
    np.testing.assert_array_equal(number_tokens(Tokenizer(Words(words))), np.arange(1, 121))


def test_numbers_beyond_the_embeddings_end_a_run():
    words = ["<s>", *map(str, range(105))]
    np.testing.assert_array_equal(number_tokens(Tokenizer(Words(words), rows=57)), np.arange(1, 51))


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
