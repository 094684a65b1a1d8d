"""What a Shape refuses, and in which words."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import Shape, encoder_lm, gpt2, tree_network

GOOD = {"vocabulary": 10, "width": 8, "hidden": 12}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"vocabulary": 0}, "sizes are positive, got vocabulary=0"),
        ({"width": -8}, "sizes are positive"),
        ({"layers": 0}, "sizes are positive"),
        ({"heads": 0}, "sizes are positive"),
        ({"hidden": 0}, "sizes are positive"),
        ({"outputs": 0}, "sizes are positive"),
        ({"heads": 3}, "the width is a multiple of heads, got width=8, heads=3"),
        ({"norm": "rms"}, "norm is one of post, pre, none, got norm=rms"),
        ({"position": "alibi"}, "position is one of none, learned, sinusoidal, rotary"),
        ({"activation": "tanh"}, "activation is one of relu, gelu, linear"),
        ({"attention": "cosine"}, "attention is one of softmax, exp, linear"),
        ({"start": "zero"}, "start is one of encoder, gpt2, fan_in"),
        ({"dropout": 1.0}, "dropout is at least 0 and below 1, got dropout=1.0"),
        ({"dropout": -0.1}, "dropout is at least 0 and below 1"),
        ({"drops": ("embedding", "head")}, "drops are among embedding, attention, residual, mlp"),
        ({"position": "learned"}, "learned positions need the most positions there can be, got length=0"),
        ({"tied": True, "outputs": 3}, "a tied read-out has one output for each token, got outputs=3, vocabulary=10"),
        ({"position": "rotary", "heads": 8}, "rotary positions need an even number of entries per head, got width=8, heads=8"),
    ],
)
def test_bad_choices_are_refused_in_one_sentence(bad, words):
    with pytest.raises(UsageError) as error:
        Shape(**(GOOD | bad))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_shapes_are_hashable_and_know_their_logits():
    assert Shape(**GOOD) == Shape(**GOOD) and hash(Shape(**GOOD)) == hash(Shape(**GOOD))
    assert Shape(**GOOD).logits == 10 and Shape(**GOOD, outputs=3).logits == 3


def test_presets_take_any_field_and_keep_the_rest():
    assert gpt2(50, width=24, layers=2, heads=2, dropout=0.0, activation="relu").activation == "relu"
    assert gpt2(50, width=24, layers=2, heads=2).hidden == 96 and gpt2(50, hidden=7).hidden == 7
    assert encoder_lm(30).scale == 200**0.5 and encoder_lm(30, width=16, scale=1.0).scale == 1.0
    assert not encoder_lm(30, copies=False).copies and encoder_lm(30).causal
    assert tree_network(6, 3).hidden == 24 and tree_network(6, 3, hidden=5).hidden == 5 and tree_network(6, 3).outputs == 3
