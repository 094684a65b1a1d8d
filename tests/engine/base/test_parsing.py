"""What is typed becomes values, and what is none is refused in a sentence."""

import pytest

from jaxdyn.engine.base.parsing import parse_seeds, parse_sets, typed, whole_number
from jaxdyn.errors import UsageError


def test_seeds_are_a_number_or_a_range():
    assert parse_seeds(None) is None and parse_seeds("8") == 8 and parse_seeds("4:8") == range(4, 8)


def test_fields_have_one_value_or_several():
    assert parse_sets(["lr=0.1", " rate = 1, 2,"]) == {"lr": "0.1", "rate": ["1", "2"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [("0", "at least 1"), ("x", "at least 1"), ("8:4", "holds no seed"), ("a:4", "write FROM:TO"), (":", "write FROM:TO")],
)
def test_what_is_no_seeds_is_refused(text, why):
    with pytest.raises(UsageError, match=why):
        parse_seeds(text)


@pytest.mark.parametrize("items", [["lr"], ["=1"], ["lr="], ["lr=,"], ["lr=1", "lr=2"]])
def test_what_is_no_field_is_refused(items):
    with pytest.raises(UsageError, match="--set"):
        parse_sets(items)


def test_a_number_has_its_limits():
    assert whole_number("7", "--cells", 1, 7) == 7
    with pytest.raises(UsageError, match="at least 1 and at most 7"):
        whole_number("8", "--cells", 1, 7)


def test_what_cannot_be_seen_is_shown_in_quotes():
    assert typed("a") == "a" and typed(" ") == "' '"
