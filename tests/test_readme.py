"""What the README prints works as it is printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.cli.parser import build_parser
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.report.catalogue import with_table

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_own_claim_works_as_pasted(tmp_path):
    code = re.search(r"<!-- test: own claim -->\n```python\n(.*?)```", README, re.S)[1]
    assert len(code.splitlines()) <= 20
    (tmp_path / "mine.py").write_text(code, encoding="utf-8")
    result = jd.verify(load_file(tmp_path / "mine.py").CLAIMS[0])
    assert result.verdict == "upheld"
    assert all(c.rejected for c in result.controls)


@pytest.mark.slow
def test_the_printed_output_is_what_is_printed(tmp_path):
    """Word for word, but for the seconds."""
    command, *printed = re.search(r"<!-- test: printed -->\n```\n\$ (.*?)```", README, re.S)[1].splitlines()
    words = [sys.executable, "-m", *shlex.split(command)]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=600, check=True).stderr.splitlines()

    def timeless(lines):
        return [re.sub(r"\d+ s;|about \d+ min", "N s;", line.rstrip()) for line in lines]

    assert timeless(said) == timeless(printed)


def test_every_command_parses():
    commands = re.findall(r"`(jaxdyn (?:list|verify|map|probe|show|new)\b[^`]*)`", README)
    assert len(commands) >= 6
    for command in commands:
        build_parser().parse_args(shlex.split(command)[1:])


def test_links_lead_somewhere():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\((?!https:)([^)#]+)\)", README):
        assert (root / target).exists(), target


@pytest.mark.slow
def test_table_is_current():
    assert with_table(README, list(all_claims().values())) == README, "run `make docs`"
    with pytest.raises(jd.UsageError, match="lacks the marks"):
        with_table("no marks", [])


def test_readme_is_one_page():
    assert len(README.splitlines()) <= 120
