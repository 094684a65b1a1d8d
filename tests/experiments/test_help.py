"""Every script of ``experiments/`` answers ``--help``: it says what the script is for and what each option means."""

import re
import runpy

import pytest

from tests.conftest import EXPERIMENTS

OPTION = re.compile(r"-\S+[^\n]*?(?: {2,}|\n +)(.*)", re.DOTALL)  # flags with their values, then the description
WORDS = re.compile(r"(?!of |\()\w+ \S")  # a description names something


@pytest.mark.usefixtures("script")  # scripts import one another
@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.py")), ids=lambda path: path.stem)
def test_help_describes_the_script_and_its_options(path, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [f"experiments/{path.name}", "--help"])
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(path), run_name="__main__")
    assert stop.value.code == 0
    usage, description, options = re.split(r"\n\n(?=\w)", capsys.readouterr().out, maxsplit=2)
    assert usage.startswith(f"usage: {path.stem} ")
    assert re.match(r"[A-Z]\S* \S+", description)
    described = [OPTION.match(option) for option in re.split(r"\n  (?=-)", options)[1:]]
    assert len(described) >= 2
    assert all(option and WORDS.match(option[1]) for option in described), options
