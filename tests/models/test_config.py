"""Fields of config.json: types, defaults, and refusals that name file and field."""

from pathlib import Path

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.models.config import Config, read_json


def config(**values):
    return Config(Path("m/config.json"), values)


def test_fields_have_types_and_defaults():
    c = config(layers=3, rate=2, on=True, nothing=None, act="gelu_new")
    assert (c.whole("layers"), c.number("rate", 1.0), c.flag("on", False)) == (3, 2.0, True)
    assert (c.whole("missing", 7), c.number("missing", 0.5), c.flag("missing", True), c.get("missing", None)) == (
        7,
        0.5,
        True,
        None,
    )
    assert (c.whole("nothing", None), c.get("nothing", None), config(first=0).whole("first", least=0)) == (None, None, 0)
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
        (lambda: config(layers=None).whole("layers"), "m/config.json has no field layers"),
        (lambda: config(layers=None).whole("layers", 7), "layers=None is not allowed: layers is a whole number"),
        (lambda: config(rate=None).number("rate", 1.0), "rate=None is not allowed: rate is a finite number"),
        (lambda: config(on=None).flag("on", True), "on=None is not allowed: on is True or False"),
        (lambda: config(act=None).choice("act", {"silu": "silu"}, "silu"), "act=None is not allowed: it is one of silu"),
        (lambda: config(scale=None).fixed(scale=True), "scale=None is not allowed: only scale=True is supported"),
    ],
)
def test_refusals_name_file_and_field(ask, words):
    with pytest.raises(UsageError, match=words) as caught:
        ask()
    assert str(caught.value).startswith("m/config.json")


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
