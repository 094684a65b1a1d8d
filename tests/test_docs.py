"""What the documents show works when it is pasted."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import jaxdyn as jd
from jaxdyn.cli import main as cli

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
def test_claim_of_the_documents_is_upheld_where_it_is_pasted(tmp_path):
    (code,) = re.findall(r"```python\n(import jax\n.*?)```", (DOCS / "write_your_own_claim.md").read_text(), re.S)
    assert len(code.splitlines()) <= 40
    (tmp_path / "my_claims.py").write_text(code)
    outcome = jd.verify("mine.logistic", load=[tmp_path / "my_claims.py"])
    assert outcome.as_expected, outcome


def test_commands_of_the_documents_are_commands():
    lines = [
        line
        for name in ("quickstart", "write_your_own_claim", "explore", "text", "galore")
        for line in (DOCS / f"{name}.md").read_text().splitlines()
    ]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("jaxdyn ")]
    assert len(commands) >= 10
    for words in commands:
        cli.build_parser().parse_args(words)


@pytest.mark.slow
def test_code_on_texts_runs_as_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "text.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(blocks), names)
    assert names["seen"]["entropy"].shape == (2, 20, 1, 35) and names["run"].records["entropy"].shape == (3, 1)
    assert (tmp_path / "out" / "my.run").exists()


def test_code_on_galore_runs_as_pasted(capsys):
    text = (DOCS / "galore.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec("\n".join(blocks), names)
    printed = re.search(r"```\n(parameter .*?)```", text, re.S)[1]
    assert capsys.readouterr().out == printed and names["tx"].init


@pytest.mark.slow
def test_code_on_caches_runs_as_pasted():
    names: dict = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", (DOCS / "cache.md").read_text(), re.S)), names)
    assert names["new"].shape == (20,) and names["more"].shape == (10,)


@pytest.mark.slow
def test_the_tests_of_the_documents_pass_in_a_project_of_ones_own(tmp_path):
    """With the claim of the documents as the project's module: its own setting and trial, by the names that the page uses."""
    (claim,) = re.findall(r"```python\n(import jax\n.*?)```", (DOCS / "write_your_own_claim.md").read_text(), re.S)
    (tests,) = re.findall(r"```python\n(.*?)```", (DOCS / "testing.md").read_text(), re.S)
    (tmp_path / "my_claims.py").write_text(claim)
    (tmp_path / "test_mine.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_mine.py"]
    own = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "PYTEST_ADDOPTS": ""}  # the options of this suite are not its
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    """Every page is there, every link leads somewhere, the API pages have their functions."""
    site = tmp_path / "site"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=DOCS.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    assert pages >= {
        ".",
        "quickstart",
        "concepts",
        "write_your_own_claim",
        "text",
        "findings",
        "gallery",
        "catalogue",
        "api/claims",
    }
    assert "jaxdyn.flow.solve" in (site / "api" / "dynamics" / "index.html").read_text()
