"""Rotary positions in old and new words, and what is refused; every field and pair is compared in test_families."""

from pathlib import Path

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models import rope_fields
from jaxdyn.models.config import Config
from jaxdyn.models.rope_fields import Rope
from jaxdyn.nn import Transformer
from jaxdyn.nn.rotary import Scaling

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LENGTH = {"original_max_position_embeddings": 64}


def read(neox=False, **values):
    names = {"base": "rotary_emb_base", "share": ("rotary_pct", 0.25)} if neox else {}
    return rope_fields.read(Config(Path("m/config.json"), values), context=2048, **names)


def test_old_and_new_words():
    expected = Rope(500.0, 1.0, Scaling(kind="llama3", factor=8.0, length=64))
    assert read(rope_theta=500.0, rope_scaling=LLAMA3 | LENGTH) == expected
    assert read(rope_parameters=LLAMA3 | LENGTH | {"rope_theta": 500.0}) == expected
    assert read(rope_theta=500.0, rope_scaling={"type": "linear", "factor": 2}) == (500.0, 1.0, Scaling(kind="linear", factor=2.0))
    assert read() == read(rope_scaling=None, rope_parameters={}) == (10_000.0, 1.0, None)
    assert read(True, rotary_emb_base=500, rotary_pct=0.5) == (500.0, 0.5, None)
    inside = {"rope_theta": 7.0, "partial_rotary_factor": 0.5}
    assert read(True, rope_parameters=inside, rotary_pct=0.5) == read(True, rope_scaling=inside) == (7.0, 0.5, None)
    assert read(partial_rotary_factor=None) == read(partial_rotary_factor=1.0) == read()


def test_the_first_length_of_llama3_is_inside_or_outside_or_that_of_all_texts():
    def length(**values):
        return read(**values).scaling.length

    assert length(rope_scaling=LLAMA3 | LENGTH, max_position_embeddings=512) == 64
    assert length(rope_scaling=LLAMA3, original_max_position_embeddings=32, max_position_embeddings=512) == 32
    assert length(rope_scaling=LLAMA3, max_position_embeddings=512) == 512
    assert length(rope_scaling=LLAMA3) == 2048


LINEAR = {"rope_type": "linear", "factor": 2.0}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rope_scaling": "yarn"}, "rope_scaling=yarn is not allowed: it is a JSON object"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type=dynamic is not allowed: it is one of default, linear"),
        ({"rope_scaling": {"rope_type": None, "type": "linear"}}, "rope_type=None is not allowed: it is one of default, linear"),
        ({"rope_scaling": LINEAR | {"type": "dynamic"}}, "type=dynamic is not allowed: rope_type=linear says something else"),
        ({"rope_scaling": {"type": "linear"}}, "m/config.json has no field factor"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor=0 is not allowed"),
        ({"rope_scaling": {"factor": 2.0}}, "factor=2.0 is not allowed: nothing reads it with rope_type=default"),
        ({"rope_scaling": LLAMA3 | LENGTH | {"low_freq_factor": 4.0}}, "low=4.0, high=4.0 are not allowed: low is below high"),
        ({"rope_scaling": {"full_attention": LINEAR}}, "rope_scaling=.* is not allowed: all layers have the same rotary positions"),
        ({"rope_scaling": LINEAR, "rope_parameters": {"rope_type": "default"}}, "rope_parameters=.*: rope_scaling says something"),
        ({"rope_theta": 0}, "rope_theta=0 is not allowed"),
        ({"rope_theta": None}, "rope_theta=None is not allowed"),
        ({"rope_theta": 50.0, "rope_parameters": {"rope_theta": 60.0}}, "rope_theta=50.0 is not allowed: only rope_theta=60.0"),
        ({"rope_scaling": LLAMA3 | LENGTH} | {"original_max_position_embeddings": 32}, "only original_max_position_embeddings=64"),
    ],
)
def test_what_is_incomplete_contradictory_or_not_supported_is_refused(values, words):
    with pytest.raises(UsageError, match=words) as caught:
        read(**values)
    assert str(caught.value).startswith("m/config.json")


@pytest.mark.parametrize(
    "scaling", [None, Scaling(kind="linear", factor=3.0), Scaling(kind="llama3", factor=3.0, low=2.0, high=5.0, length=77)]
)
def test_what_is_written_is_read_as_the_same(scaling):
    shape = Transformer(vocabulary=5, width=8, layers=1, heads=2, hidden=4, base=70.0, scaling=scaling)
    fields = rope_fields.written(shape)
    assert read(**fields) == (70.0, 1.0, scaling)
    old = {name: value for name, value in fields.items() if name != "rope_parameters"}
    assert read(**old) == (70.0, 1.0, scaling)
