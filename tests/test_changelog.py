"""The changelog is read line by line: an entry is one line, in one of the usual sections."""

import re
from pathlib import Path

LINES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
HEADINGS = re.compile(r"# Changelog|## (Unreleased|\d+\.\d+\.\d+)|### (Added|Changed|Deprecated|Removed|Fixed|Security)|#### \w.*")


def test_an_entry_is_one_short_line():
    assert [line for line in LINES if line and not line.startswith(("- ", "#"))] == [], "lines that continue an entry"
    assert [line for line in LINES if len(line) > 130] == []


def test_sections_are_the_usual_ones():
    assert [line for line in LINES if line.startswith("#") and not HEADINGS.fullmatch(line)] == []
