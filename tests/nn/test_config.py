"""What a Transformer refuses, and in which words."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxdyn import Code
from jaxdyn.errors import UsageError
from jaxdyn.nn import ACTIVATIONS, KINDS, Transformer
from jaxdyn.nn.rotary import Scaling

GOOD = {"vocabulary": 10, "width": 8, "hidden": 12, "heads": 2}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"vocabulary": 0}, "vocabulary=0 is not allowed: vocabulary is at least 1"),
        ({"width": -8}, "width=-8 is not allowed: width is at least 1"),
        ({"layers": 0}, "layers is at least 1"),
        ({"heads": 0}, "heads is at least 1"),
        ({"hidden": 0}, "hidden is at least 1"),
        ({"groups": 0}, "groups is at least 1"),
        ({"repeats": 0}, "repeats is at least 1"),
        ({"outputs": 0}, "outputs=0 is not allowed: outputs is at least 1"),
        ({"heads": 3}, "width=8, heads=3 are not allowed: width is a multiple of heads"),
        ({"heads": 4, "groups": 3}, "heads=4, groups=3 are not allowed: heads is a multiple of groups"),
        ({"norm": "batch"}, "norm=batch is not allowed: norm is one of none, rms, layer"),
        ({"norm_place": "between"}, "norm_place=between is not allowed: norm_place is one of pre, post"),
        ({"mlp": "mixture"}, "mlp is one of none, plain, gated"),
        ({"mlp": "none"}, "mlp=none, hidden=12 are not allowed: an MLP has hidden units, and hidden is None where there is none"),
        ({"position": "polar"}, "position is one of none, learned, sinusoidal, rotary, alibi"),
        ({"activation": "swish"}, "activation='swish' is not allowed: it is one of silu, relu, gelu"),
        ({"attention": "cosine"}, "attention='cosine' is not allowed: it is one of softmax, exp, linear"),
        ({"attention": 3}, "attention=3 is not allowed: it is one of softmax"),
        ({"order": "random"}, "order is one of immediate, all"),
        ({"start": "zero"}, "start is one of normal, gpt2, encoder, fan_in, orthogonal"),
        ({"dropout": 1.0}, "dropout=1.0 is not allowed: dropout is at least 0 and below 1"),
        ({"dropout": -0.1}, "dropout is at least 0 and below 1"),
        ({"dropout": True}, "dropout=True is not allowed: dropout is a finite number, at least 0 and below 1"),
        ({"dropout": float("nan")}, "dropout=nan is not allowed: dropout is a finite number, at least 0 and below 1"),
        ({"layers": True}, "layers=True is not allowed: layers is a whole number, at least 1"),
        ({"layers": 2.0}, "layers=2.0 is not allowed: layers is a whole number, at least 1"),
        ({"hidden": None}, "mlp=gated, hidden=None are not allowed: an MLP has hidden units"),
        ({"outputs": 2.5}, "outputs=2.5 is not allowed: outputs is a whole number, at least 1"),
        ({"length": 2.5, "position": "learned"}, "length=2.5 is not allowed: length is a whole number, at least 0"),
        ({"scale": float("inf")}, "scale=inf is not allowed: scale is a finite number"),
        ({"skip": None}, "skip=None is not allowed: skip is a finite number"),
        ({"causal": "no"}, "causal=no is not allowed: causal is True or False"),
        ({"parallel": 1}, "parallel=1 is not allowed: parallel is True or False"),
        ({"dtype": "float31"}, "dtype=float31 is not allowed: dtype is one of float32, float64, bfloat16, float16"),
        ({"dtype": None}, "dtype=None is not allowed"),
        ({"drops": "mlp"}, "drops=mlp is not allowed: drops are among embedding, attention, residual, mlp"),
        ({"drops": ("embedding", "head")}, "drops are among embedding, attention, residual, mlp"),
        ({"biases": ("gate",), "mlp": "plain"}, "with mlp=plain and project=True biases are among q, k, v, o, up, down, head"),
        ({"biases": ("o",), "project": False}, "with mlp=gated and project=False biases are among q, k, v, gate, up, down, head"),
        ({"biases": "q"}, "biases=q is not allowed"),
        ({"project": False, "head_size": 6}, "without a matrix after them the heads are as wide as the stream together"),
        ({"position": "learned"}, "length=0 is not allowed: learned positions need length"),
        ({"tied": True, "outputs": 3}, "outputs=3, vocabulary=10 are not allowed: a tied read-out has one output for each token"),
        ({"heads": 8}, "width=8, heads=8 are not allowed: rotary positions need an even number of entries per head"),
        ({"head_size": 5}, "an even number of entries per head"),
        ({"rotary": 3}, "an even number of entries per head"),
        ({"rotary": 6}, "rotary=6 is not allowed: a head has 4 entries"),
        ({"rotary": 2, "position": "none"}, "a number of rotary entries needs rotary positions"),
        ({"scaling": Scaling(kind="linear"), "position": "alibi"}, "scaling needs rotary positions"),
        ({"scaling": ("linear", 2.0)}, "scaling is a jaxdyn.nn.rotary.Scaling or None"),
        ({"scaling": Scaling(kind="table", table=(1.0,))}, "its table has 2 divisors"),
        ({"window": 0}, "window is at least 1"),
        ({"window": 2, "causal": False}, "a window is one of positions before the query, for causal networks"),
        ({"parallel": True, "norm_place": "post"}, "parallel blocks have an MLP, and their norms before both"),
        ({"parallel": True, "mlp": "none", "hidden": None}, "parallel blocks have an MLP"),
    ],
)
def test_bad_fields_are_refused_in_one_sentence(bad, words):
    with pytest.raises(UsageError) as error:
        Transformer(**(GOOD | bad))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_shapes_are_hashable_and_know_their_logits():
    assert Transformer(**GOOD) == Transformer(**GOOD) and hash(Transformer(**GOOD)) == hash(Transformer(**GOOD))
    assert Transformer(**GOOD).logits == 10 and Transformer(**GOOD, outputs=3).logits == 3


def test_numpys_numbers_and_lists_become_pythons_own():
    """Otherwise a float32 network would have float64 numbers in 64-bit mode, and a program of its own."""
    numpys = {"scale": np.float64(2), "drops": ["mlp"], "tied": np.bool_(True), "epsilon": np.float32(0.5), "layers": np.asarray(3)}
    other = Transformer(vocabulary=np.int64(10), width=np.int32(8), hidden=12, heads=2, dtype=np.float32, **numpys)
    plain = Transformer(**GOOD, scale=2.0, drops=("mlp",), tied=True, epsilon=0.5, layers=3)
    assert other == plain and hash(other) == hash(plain) and repr(other) == repr(plain)


def test_heads_may_be_wider_than_the_residual_stream():
    shape = Transformer(vocabulary=5, width=12, layers=1, heads=5, hidden=7, head_size=6)
    assert shape.weights["q"] == (12, 30) and shape.weights["o"] == (30, 12) and shape.entries == 6
    assert dataclasses.replace(shape, biases=["v", "q"]).biases == ("q", "v"), "the order of the matrices"
    assert hash(dataclasses.replace(shape, scaling=Scaling(kind="linear", factor=2)))


def test_the_order_of_repeated_blocks():
    shape = Transformer(**GOOD, layers=3)
    assert dataclasses.replace(shape, repeats=2).walk == (0, 0, 1, 1, 2, 2)
    assert dataclasses.replace(shape, repeats=2, order="all").walk == (0, 1, 2, 0, 1, 2)
    assert shape.walk == (0, 1, 2) and shape.depth == 3


def test_what_is_known_while_numbers_are_traced():
    def look(std, index):
        shape = Transformer(**GOOD, std=std, attention=Code(index, ("exp", "relu")), activation=Code(1, ("relu", "gelu")))
        known = shape.known
        assert hash(known) and known.std == 0.02 and known.attention == "softmax" and str(known.activation) == "gelu"
        return std

    jax.jit(look)(0.5, 1)
    shape = Transformer(**GOOD)
    assert shape.known is shape


def test_every_field_is_documented_with_its_choices():
    text = Transformer.__doc__
    for field in dataclasses.fields(Transformer):
        assert f"        {field.name}: " in text or f"{field.name}, " in text, field.name
    assert set(KINDS) >= {"softmax", "exp", "linear", "sigmoid", "relu", "sink_bias"} and {"quadratic", "linear"} < set(ACTIVATIONS)
