"""Presets: the published sizes, and any field may be overridden."""

import jax
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import LLAMA, count, encoder_lm, gpt2, llama, network, tree_network


def test_presets_take_any_field_and_keep_the_rest():
    assert gpt2(50, width=24, layers=2, heads=2, dropout=0.0, activation="relu").activation == "relu"
    assert gpt2(50, width=24, layers=2, heads=2).hidden == 96 and gpt2(50, hidden=7).hidden == 7
    assert encoder_lm(30).scale == 200**0.5 and encoder_lm(30, width=16, scale=1.0).scale == 1.0
    assert not encoder_lm(30, copies=False).copies and encoder_lm(30).causal
    assert tree_network(6, 3).hidden == 24 and tree_network(6, 3, hidden=5).hidden == 5 and tree_network(6, 3).outputs == 3


def test_sizes_are_whole_numbers_of_any_library():
    assert encoder_lm(np.int64(30), width=np.int64(16)) == encoder_lm(30, width=16)  # the scale, too, is Python's number
    assert gpt2(50, width=np.int32(24), heads=2) == gpt2(50, width=24, heads=2)
    assert tree_network(np.int64(6), np.int64(3)) == tree_network(6, 3)
    for width in ("16", 16.0, True, None, -4):
        for call in (lambda width: encoder_lm(30, width=width), lambda width: gpt2(50, width=width, heads=1)):
            with pytest.raises(UsageError, match=f"width={width} is not allowed: width is"):
                call(width)


def size(shape):
    return count(jax.eval_shape(network(shape).init, jax.random.key(0)))


def test_numbers_of_weights_are_those_counted_by_hand():
    assert size(gpt2(50_257)) == 124_439_808
    v, d = 28_782, 200
    attention, mlp, norms = d * 3 * d + 3 * d + d * d + d, d * d + d + d * d + d, 2 * 2 * d
    assert size(encoder_lm(v)) == v * d + attention + mlp + norms + d * v + v == 11_783_582
    assert size(encoder_lm(v, layers=5)) == 2 * v * d + v + 5 * (attention + mlp + norms)
    v, d, m, classes = 20, 16, 80, 5
    layer = d * 3 * d + d * m + m + m * d + d + 2 * 2 * d
    assert size(tree_network(v, classes, width=d)) == v * d + 3 * layer + d * classes + classes


@pytest.mark.parametrize(
    ("name", "exact"),
    [("60M", 58_073_600), ("130M", 134_105_856), ("350M", 367_969_280), ("1B", 1_339_082_752), ("7B", 6_738_415_616)],
)
def test_published_sizes(name, exact):
    shape = llama(name)
    d, layers = shape.width, shape.layers
    assert size(shape) == exact
    assert exact == 2 * 32_000 * d + (2 * layers + 1) * d + layers * (4 * d * d + 3 * d * shape.hidden)


def test_wrong_names_are_refused():
    with pytest.raises(UsageError, match="llama='2M'"):
        llama("2M")
    with pytest.raises(UsageError, match=r"llama=\[\] is not allowed: it is one of 9M"):
        llama([])
    assert set(LLAMA) >= {"60M", "7B"}
