"""What a Shape refuses, and in which words."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import Shape

GOOD = {"vocabulary": 10, "width": 8, "hidden": 12}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"vocabulary": 0}, "vocabulary=0 is not allowed: vocabulary is at least 1"),
        ({"width": -8}, "width=-8 is not allowed: width is at least 1"),
        ({"layers": 0}, "layers is at least 1"),
        ({"heads": 0}, "heads is at least 1"),
        ({"hidden": 0}, "hidden is at least 1"),
        ({"outputs": 0}, "outputs=0 is not allowed: outputs is at least 1"),
        ({"heads": 3}, "width=8, heads=3 are not allowed: width is a multiple of heads"),
        ({"norm": "rms"}, "norm=rms is not allowed: norm is one of post, pre, none"),
        ({"position": "polar"}, "position is one of none, learned, sinusoidal, rotary, alibi"),
        ({"activation": "tanh"}, "activation is one of relu, gelu, linear"),
        ({"attention": "cosine"}, "attention is one of softmax, exp, linear"),
        ({"start": "zero"}, "start is one of encoder, gpt2, fan_in"),
        ({"dropout": 1.0}, "dropout=1.0 is not allowed: dropout is at least 0 and below 1"),
        ({"dropout": -0.1}, "dropout is at least 0 and below 1"),
        ({"drops": ("embedding", "head")}, "drops are among embedding, attention, residual, mlp"),
        ({"position": "learned"}, "length=0 is not allowed: learned positions need length"),
        ({"tied": True, "outputs": 3}, "outputs=3, vocabulary=10 are not allowed: a tied read-out has one output for each token"),
        (
            {"position": "rotary", "heads": 8},
            "width=8, heads=8 are not allowed: rotary positions need an even number of entries per head",
        ),
    ],
)
def test_bad_choices_are_refused_in_one_sentence(bad, words):
    with pytest.raises(UsageError) as error:
        Shape(**(GOOD | bad))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_shapes_are_hashable_and_know_their_logits():
    assert Shape(**GOOD) == Shape(**GOOD) and hash(Shape(**GOOD)) == hash(Shape(**GOOD))
    assert Shape(**GOOD).logits == 10 and Shape(**GOOD, outputs=3).logits == 3
