"""Presets: the published sizes, and any field may be overridden."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import encoder_lm, gpt2, tree_network


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
