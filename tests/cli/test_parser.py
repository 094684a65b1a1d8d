"""Commands, options and their help."""

import pytest

import jaxdyn as jaxdyn_module
from jaxdyn.cli.main import main as cli


def test_help(capsys):
    for words in (["--help"], ["verify", "--help"]):
        with pytest.raises(SystemExit) as stop:
            cli(words)
        assert stop.value.code == 0 and "usage: jaxdyn" in capsys.readouterr().out


def test_help_is_in_plain_sentences(capsys):
    for words in (["list"], ["show"], ["verify"], ["new"], ["report"], ["completion"]):
        with pytest.raises(SystemExit):
            cli([*words, "--help"])
        assert capsys.readouterr().out.count(".\n") > 1
    with pytest.raises(SystemExit):
        cli(["verify", "--help"])
    assert "The runs next to a claim are its own" in " ".join(capsys.readouterr().out.split())


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out == f"jaxdyn {jaxdyn_module.__version__}\n"
