"""Sequences of a text, means over held-out batches, the shape of the rate, and the settings that share them."""

import dataclasses
import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import nn, text
from jaxdyn.errors import UsageError
from jaxdyn.text import language
from jaxdyn.text.pretraining import PARTS, TextTraining, held_out, loss, mean_losses, sample, schedule, spaced


@jd.setting
class Own(TextTraining):
    """A setting that inherits, with a field of its own and another default."""

    lr: jd.Swept = jd.field(0.1, above=0)
    steps: int = jd.field(20, at_least=20)

    def __post_init__(self) -> None:
        TextTraining.__post_init__(self)


def test_random_sequences_are_pieces_of_the_stream():
    tokens = np.asarray(sample(jax.random.key(0), jnp.arange(50), 40, 8))
    assert tokens.shape == (40, 9) and tokens.min() >= 0 and len(set(tokens[:, 0])) > 10
    np.testing.assert_array_equal(np.diff(tokens, axis=1), 1)
    np.testing.assert_array_equal(sample(jax.random.key(1), jnp.arange(10), 3, 9)[:, 0], 0)  # one place is left


def test_spaced_sequences_reach_from_one_end_to_the_other():
    tokens = spaced(np.arange(100), 5, 8)
    np.testing.assert_array_equal(tokens[:, 0], [0, 22, 45, 68, 91])
    np.testing.assert_array_equal(tokens[-1], np.arange(91, 100))


def test_held_out_batches_lie_in_their_parts():
    s = TextTraining()
    corpus = s.corpus()
    held = np.asarray(held_out((corpus.valid, corpus.test), 3, 2, 8))
    assert held.shape == (len(PARTS), 3, 2, 9)
    np.testing.assert_array_equal(held[1, 0, 0], corpus.test[:9])
    np.testing.assert_array_equal(held[0, -1, -1], corpus.valid[-9:])


def test_losses_are_means_over_the_batches_of_a_part():
    held = jnp.arange(24).reshape(2, 3, 2, 2)
    np.testing.assert_allclose(mean_losses(jnp.mean, held), [5.5, 17.5])


@pytest.mark.slow
def test_the_loss_is_that_of_the_next_token():
    net = nn.network(nn.Transformer(vocabulary=5, width=4, layers=1, heads=1, hidden=4))
    params, tokens = net.init(jax.random.key(0)), jnp.asarray([[0, 1, 2, 3]])
    assert loss(net, params, tokens) == language.loss(net, params, tokens[:, :3], tokens[:, 1:])


def test_the_rate_rises_and_falls_to_a_tenth():
    rate = schedule(40)
    np.testing.assert_allclose([rate(0), rate(2), rate(4), rate(40)], [0, 0.5, 1, 0.1], rtol=1e-6)
    assert np.all(np.diff([rate(i) for i in range(4, 41)]) < 0)


def test_a_setting_inherits_fields_ranges_and_records():
    s = Own(records=2)
    assert s.interval == 10 and list(s.recorded_at) == [0, 10, 20] and Own.swept_fields == ("lr",)
    assert [f.name for f in dataclasses.fields(s)][-1] == "lr" and s.digest == text.load("topics", "bytes").digest


@pytest.mark.parametrize("cls", [TextTraining, Own])
@pytest.mark.parametrize("wrong", [{"batch": 0}, {"length": 0}, {"records": 0}, {"steps": 9}, {"records": 3}, {"text": "/no/such"}])
def test_settings_that_are_not_allowed(cls, wrong):
    with pytest.raises(UsageError, match="not allowed|/no/such"):
        jd.grid(cls, **wrong)


@pytest.mark.slow
def test_files_have_a_digest_and_the_generated_text_can_be_read_while_tracing(tmp_path):
    (tmp_path / "text").write_text("a b c d " * 50, encoding="utf-8")
    s = TextTraining(text=str(tmp_path / "text"), length=2)
    assert s.digest == s.corpus().digest and len(s.digest) == 12
    again = TextTraining(text="markov", level="words", vocabulary=30)
    size = jax.jit(lambda x: x + len(again.corpus().train))(0)
    assert again.digest == "" and size > 1000


def test_the_manual_has_a_digest_of_what_it_says(monkeypatch):
    """Each release of Python has its own; without one, settings can still be made."""
    manual, digests = importlib.import_module("pydoc_data.topics"), [TextTraining(level="bpe").digest]
    monkeypatch.setattr(manual, "topics", {"a": "b " * 10**5})
    for _ in range(2):
        text.sources._load.cache_clear()
        digests.append(TextTraining().digest)
        monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    text.sources._load.cache_clear()
    assert len(set(digests)) == 3 and digests[2] == "" and len(digests[0]) == len(digests[1]) == 12


@pytest.mark.parametrize("name", ["batch", "length", "steps", "records"])
@pytest.mark.parametrize("wrong", [True, 20.5, float("nan"), -1])
def test_counts_are_whole_numbers(name, wrong):
    with pytest.raises(UsageError, match=f"{name}=.* is not allowed"):
        TextTraining(**{name: wrong})


@pytest.mark.parametrize("length", [9, 10, 99])
def test_a_stream_that_is_too_short_is_refused(length):
    """Its last token would be repeated without a word."""
    stream = np.arange(9)
    for call in (
        lambda: sample(jax.random.key(0), jnp.asarray(stream), 2, length),
        lambda: jax.jit(sample, static_argnums=(2, 3))(jax.random.key(0), jnp.asarray(stream), 2, length),
        lambda: spaced(stream, 2, length),
        lambda: held_out((np.arange(200), stream), 1, 2, length),
    ):
        with pytest.raises(
            UsageError, match=f"a text of 9 tokens is too short for a sequence of {length} inputs and their targets"
        ):
            call()


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "2", float("nan")])
def test_counts_of_sequences_are_whole_numbers(wrong):
    stream = np.arange(50)
    for call in (
        lambda: sample(jax.random.key(0), jnp.asarray(stream), wrong, 4),
        lambda: sample(jax.random.key(0), jnp.asarray(stream), 4, wrong),
        lambda: spaced(stream, wrong, 4),
        lambda: spaced(stream, 4, wrong),
        lambda: held_out((stream,), wrong, 2, 4),
        lambda: held_out((stream,), 2, wrong, 4),
        lambda: schedule(wrong),
    ):
        with pytest.raises(UsageError, match="is not allowed"):
            call()
    np.testing.assert_array_equal(spaced(stream, np.int64(3), np.int32(4)), spaced(stream, 3, 4))
