"""What a Shape refuses, and in which words."""

import numpy as np
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
        ({"dropout": True}, "dropout=True is not allowed: dropout is a finite number, at least 0 and below 1"),
        ({"dropout": float("nan")}, "dropout=nan is not allowed: dropout is a finite number, at least 0 and below 1"),
        ({"layers": True}, "layers=True is not allowed: layers is a whole number, at least 1"),
        ({"layers": 2.0}, "layers=2.0 is not allowed: layers is a whole number, at least 1"),
        ({"hidden": None}, "hidden=None is not allowed: hidden is a whole number, at least 1"),
        ({"outputs": 2.5}, "outputs=2.5 is not allowed: outputs is a whole number, at least 1"),
        ({"length": 2.5, "position": "learned"}, "length=2.5 is not allowed: length is a whole number, at least 0"),
        ({"scale": float("inf")}, "scale=inf is not allowed: scale is a finite number"),
        ({"causal": "no"}, "causal=no is not allowed: causal is True or False"),
        ({"dtype": "float31"}, "dtype=float31 is not allowed: dtype is one of float32, float64, bfloat16, float16"),
        ({"drops": "mlp"}, "drops=mlp is not allowed: drops are among embedding, attention, residual, mlp"),
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


def test_numpys_numbers_and_lists_become_pythons_own():
    other = Shape(vocabulary=np.int64(10), width=np.int32(8), hidden=12, scale=np.float64(2), drops=["mlp"], tied=np.bool_(True))
    plain = Shape(**GOOD, scale=2.0, drops=("mlp",), tied=True)
    assert other == plain and hash(other) == hash(plain) and repr(other) == repr(plain)
