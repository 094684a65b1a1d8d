"""What is typed becomes values, and what is none is refused in a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxdyn.engine.base.parsing import (
    from_home,
    parse_json,
    parse_seeds,
    parse_sets,
    parse_values,
    plain_digits,
    plain_file,
    quoted,
    typed,
    whole_number,
)
from jaxdyn.errors import UsageError


def test_seeds_are_a_number_or_a_range():
    assert parse_seeds(None) is None and parse_seeds("8") == 8 and parse_seeds("4:8") == range(4, 8)


def test_fields_have_one_value_or_several():
    assert parse_sets(["lr=0.1", " rate = 1, 2,", "one=3,"]) == {"lr": "0.1", "rate": ["1", "2"], "one": ["3"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [("0", "at least 1"), ("x", "at least 1"), ("8:4", "holds no seed"), ("a:4", "write FROM:TO"), (":", "write FROM:TO")],
)
def test_what_is_no_seeds_is_refused(text, why):
    with pytest.raises(UsageError, match=why):
        parse_seeds(text)


@pytest.mark.parametrize("items", [["lr"], ["=1"], ["lr="], ["lr=,"], ["lr=1", "lr=2"], ["lr=1,,2"], ["lr=,1"], ["lr=1,,"]])
def test_what_is_no_field_is_refused(items):
    with pytest.raises(UsageError, match="--set"):
        parse_sets(items)


def test_a_number_has_its_limits():
    assert whole_number("7", "--cells", 1, 7) == 7
    with pytest.raises(UsageError, match="at least 1 and at most 7"):
        whole_number("8", "--cells", 1, 7)


def test_what_cannot_be_seen_is_shown_in_quotes():
    assert typed("a") == "a" and typed(" ") == "' '"


def test_a_comma_in_quotes_belongs_to_a_value():
    assert parse_sets(['text="a,b.txt"', 'words="a,b", c,"say ""x"""']) == {"text": "a,b.txt", "words": ["a,b", "c", 'say "x"']}
    assert parse_values('"a') == [] and parse_values('"a"b') == []
    assert parse_values(' " a ", ""') == [" a ", ""] and parse_values('a"b') == ['a"b']
    with pytest.raises(UsageError, match="a value with a comma in double quotes"):
        parse_sets(['text="a,b.txt'])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('," \n\r\t=:')), min_size=1))
def test_quoted_values_are_read_back(values):
    assert parse_values(",".join(map(quoted, values))) == values


@pytest.mark.parametrize("text", ["1_0", "\u0663", "\uff11", "1\u0660"])
def test_only_plain_digits_are_numbers(text):
    with pytest.raises(ValueError):
        plain_digits(text)
    with pytest.raises(UsageError, match="whole number"):
        whole_number(text, "--cells", 0)
    with pytest.raises(UsageError, match="--seeds"):
        parse_seeds(text)
    with pytest.raises(UsageError, match="--seeds"):
        parse_seeds(f"0:{text}")


def test_json_without_a_bottom_is_no_json():
    assert parse_json('{"a": [1]}') == {"a": [1]}
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def test_the_home_folder_is_filled_in(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert from_home("~/x") == tmp_path / "x" and str(from_home("x/~")) == "x/~" and from_home(tmp_path) == tmp_path
    for given_, variable in (("~nobody-of-this-name/x", ""), ("~nobody-of-this-name", "JAXDYN_CACHE")):
        with pytest.raises(UsageError, match=f"^{variable}=?{given_} is not allowed: no home folder is known for ~nobody"):
            from_home(given_, variable)


def test_a_plain_file_is_one_or_is_not_there(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for name in ("file", "nothing"):
        assert plain_file(tmp_path / name) == tmp_path / name
    with pytest.raises(UsageError, match="cannot be read: it is no plain file"):
        plain_file(tmp_path)
