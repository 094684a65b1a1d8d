"""Fields of config.json: types, defaults, old and new words for rotary positions, and refusals that name file and field."""

from pathlib import Path

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.config import Config, read_json
from jaxdyn.nn.rotary import Scaling


def config(**values):
    return Config(Path("m/config.json"), values)


def test_fields_have_types_and_defaults():
    c = config(layers=3, rate=2, on=True, nothing=None, act="gelu_new")
    assert (c.whole("layers"), c.number("rate", 1.0), c.flag("on", False)) == (3, 2.0, True)
    assert (c.whole("nothing", 7), c.number("missing", 0.5), c.flag("missing", True), c.get("missing", None)) == (
        7,
        0.5,
        True,
        None,
    )
    assert c.choice("act", {"gelu_new": "gelu_tanh"}) == "gelu_tanh"
    c.fixed(on=True, missing=4)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: config().whole("layers"), "m/config.json has no field layers"),
        (lambda: config(layers="3").whole("layers"), "m/config.json: layers=3 is not allowed: layers is a whole number"),
        (lambda: config(layers=0).whole("layers"), "layers is at least 1"),
        (lambda: config(layers=2**31).whole("layers"), "layers is at least 1 and at most 2147483647"),
        (lambda: config(rate=-1).number("rate", 1.0), "m/config.json: rate=-1 is not allowed: rate is above 0"),
        (lambda: config(on=1).flag("on", True), "m/config.json: on=1 is not allowed: on is True or False"),
        (lambda: config(act="mish").choice("act", {"silu": "silu"}), "act=mish is not allowed: it is one of silu"),
        (lambda: config(act=[]).choice("act", {"silu": "silu"}), r"act=\[\] is not allowed"),
        (lambda: config(scale=False).fixed(scale=True), "scale=False is not allowed: only scale=True is supported"),
        (lambda: config(rope_scaling="yarn").rope(), "rope_scaling=yarn is not allowed: it is a JSON object"),
        (lambda: config(rope_scaling={"type": "dynamic", "factor": 2.0}).rope(), "rope_type=dynamic is not allowed: it is one of"),
        (lambda: config(rope_scaling={"type": "linear", "factor": 0}).rope(), "factor=0 is not allowed"),
        (lambda: config(rope_theta=0).rope(), "rope_theta=0 is not allowed"),
    ],
)
def test_refusals_name_file_and_field(ask, words):
    with pytest.raises(UsageError, match=words) as caught:
        ask()
    assert str(caught.value).startswith("m/config.json")


def test_old_and_new_words_for_rotary_positions():
    fields = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    expected = (500.0, Scaling(kind="llama3", factor=8.0, length=64))
    assert config(rope_theta=500.0, rope_scaling=fields | {"rope_type": "llama3"}).rope() == expected
    assert config(rope_parameters=fields | {"rope_type": "llama3", "rope_theta": 500.0}).rope() == expected
    assert config(rope_theta=500.0, rope_scaling={"type": "linear", "factor": 2}).rope() == (
        500.0,
        Scaling(kind="linear", factor=2.0),
    )
    assert config(rope_scaling=None).rope(base=7.0) == (7.0, None)


@pytest.mark.parametrize(("text", "words"), [("{", "it is not JSON"), ("[1]", "no JSON object"), ("[" * 9999, "it is not JSON")])
def test_other_files_are_refused(text, words, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"config.json cannot be read: .*{words}"):
        read_json(file)
    with pytest.raises(UsageError, match="nothing.json cannot be read: No such file"):
        read_json(tmp_path / "nothing.json")


@pytest.mark.parametrize("name", ["/dev/zero", "folder"])
def test_what_is_no_plain_file_is_refused(name, tmp_path):
    """A device without an end would fill the memory."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot be read: it is no plain file"):
        read_json(tmp_path / name)
