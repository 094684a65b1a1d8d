"""An empty place to work in, and the command line in this process."""

import pytest

from jaxdyn import theories
from jaxdyn.cli.main import main as cli


@pytest.fixture
def away_from_home(tmp_path, monkeypatch):
    """An empty working folder, no theory but the user's own, and an environment that is put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(theories, "__path__", [])
    monkeypatch.setenv("EQX_ON_ERROR", "nan")


@pytest.fixture
def jaxdyn(capsys):
    """Run ``jaxdyn`` with these words; its exit code, standard output and standard error."""

    def run(*words):
        code = cli([str(w) for w in words])
        out, err = capsys.readouterr()
        return code, out, err

    return run
