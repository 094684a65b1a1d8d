"""What the documents show works when it is pasted."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.optimize

import jaxdyn as jd
from jaxdyn.cli import main as cli
from jaxdyn.cli.parser import build_parser
from jaxdyn.engine.base.reference import load_file
from jaxdyn.maintain import executed

DOCS = Path(__file__).parents[1] / "docs"
RUN = ("tutorial.md", "jax.md", "referee.md", "api/by_task.md")  # pages whose printed output is compared
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
def test_claim_of_the_documents_is_upheld_where_it_is_pasted(tmp_path):
    (code,) = re.findall(r"```python\n(import jax\n.*?)```", (DOCS / "write_your_own_claim.md").read_text(encoding="utf-8"), re.S)
    assert len(code.splitlines()) <= 40
    (tmp_path / "my_claims.py").write_text(code, encoding="utf-8")
    outcome = jd.verify("mine.logistic", load=[tmp_path / "my_claims.py"])
    assert outcome.as_expected, outcome


def pasted_claims(folder):
    """The files of claims that newcomers are given, by name, written to a folder; every claim in them is meant to be upheld."""
    own, referee = ((DOCS / name).read_text(encoding="utf-8") for name in ("write_your_own_claim.md", "referee.md"))
    files = {
        "my_claims": re.findall(r"```python\n(import jax\n.*?)```", own, re.S)[0],
        "mine": re.findall(r'```python title="mine.py"\n(.*?)```', referee, re.S)[0],
        "better": re.findall(r'```python title="better.py"\n(.*?)```', referee, re.S)[0],
        "written": (Path(cli.__file__).parent / "new_claim.tmpl").read_text(encoding="utf-8"),
    }
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return {name: folder / f"{name}.py" for name in files}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["my_claims", "better", "written"])
def test_claims_of_the_documents_hold_on_seeds_that_nobody_has_looked_at(tmp_path, monkeypatch, name):
    files = pasted_claims(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # one of them imports another
    (claim,) = load_file(files[name]).CLAIMS
    for first in (0, 1000, 123_456):
        outcome = jd.verify(claim, seeds=range(first, first + 64))
        assert outcome.verdict == "upheld", outcome
        assert all(opponent.rejected for opponent in (*outcome.controls, *outcome.rivals))


def test_the_error_of_the_documents_halves_at_every_start_that_may_be_drawn(tmp_path):
    """By NumPy on all starts between the ends of what is drawn, not on those of some seeds; and away from where it has no order."""
    mine = load_file(pasted_claims(tmp_path)["my_claims"])
    (claim,), start = mine.CLAIMS, np.linspace(0.05, 0.1, 501)
    (check,) = claim.judge(mine.jd.verify(claim, seeds=2).data)
    for cell in claim.quick.cells():
        errors = []
        for lr in (0.01, 0.005):
            a = b = np.sqrt(start)
            for _ in range(round(cell.time / lr)):
                a, b = a + lr * b * (cell.lam - a * b), b + lr * a * (cell.lam - a * b)
            law = cell.lam / (1 + (cell.lam / start - 1) * np.exp(-2 * cell.lam * cell.time))
            errors.append(a * b / law - 1)
        ratio = errors[0] / errors[1]
        low, high = check.bound
        assert low + 0.03 < ratio.min() and ratio.max() < high - 0.03, (cell.lam, ratio.min(), ratio.max())


def test_commands_of_the_documents_are_commands():
    lines = [
        line
        for name in (
            "quickstart",
            "write_your_own_claim",
            "explore",
            "accelerators",
            "text",
            "galore",
            "laboratory",
            "tutorial",
            "api/by_task",
        )
        for line in (DOCS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    ]
    commands = [shlex.split(line.removeprefix("$ "), comments=True)[1:] for line in lines if re.match(r"(\$ )?jaxdyn ", line)]
    assert len(commands) >= 10
    for words in commands:
        build_parser().parse_args(words)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_page_prints_what_it_shows(name):
    """But for times. `python -m jaxdyn.maintain run FILE` writes today's output."""
    text = (DOCS / name).read_text(encoding="utf-8")
    assert executed.masked(executed.page(text)) == executed.masked(text)


def test_the_beginning_of_a_page_prints_what_it_shows():
    text = (DOCS / "jax.md").read_text(encoding="utf-8").split("## What does")[0]
    assert executed.page(text) == text and "```text" in text


@pytest.mark.slow
def test_the_theory_of_the_tutorial_agrees_with_other_solvers(tmp_path):
    """Its least Q by SciPy's minimiser under constraints, its least l1 norm by linear programming; data of its own."""
    blocks = re.findall(r'```python title="diagonal.py"\n(.*?)```', (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "diagonal.py").write_text(blocks[0], encoding="utf-8")
    tutorial, alpha = load_file(tmp_path / "diagonal.py"), 0.3
    with jax.enable_x64(True):
        x, y = tutorial.make_data(tutorial.Diagonal(), jax.random.key(5))
        x, y, beta, sparse = map(np.asarray, (x, y, tutorial.least_q(alpha, x, y), tutorial.least_l1(x, y)))

    def q(b):
        z = b / alpha**2
        return alpha**2 * np.sum(2 - np.sqrt(4 + z**2) + z * np.arcsinh(z / 2))

    fitted = {"type": "eq", "fun": lambda b: x @ b - y}
    least = scipy.optimize.minimize(q, np.linalg.pinv(x) @ y, constraints=fitted, tol=1e-14, options={"maxiter": 500})
    np.testing.assert_allclose(beta, least.x, atol=1e-5)
    split = scipy.optimize.linprog(np.ones(16), A_eq=np.hstack([x, -x]), b_eq=y)
    np.testing.assert_allclose(sparse, split.x[:8] - split.x[8:], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_shows(file):
    content = json.loads(file.read_text(encoding="utf-8"))
    shown, today = (executed.as_page(one, file.stem) for one in (content, executed.notebook(content)))
    assert executed.masked(today[0]) == executed.masked(shown[0]) and today[1].keys() == shown[1].keys() != set()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_has_the_output_of_its_cells(file):
    content = json.loads(file.read_text(encoding="utf-8"))
    assert (content["nbformat"], len({cell["id"] for cell in content["cells"]})) == (4, len(content["cells"]))
    assert all(
        cell["outputs"] or "print" not in "".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"
    )


@pytest.mark.slow
def test_code_on_texts_runs_as_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "text.md").read_text(encoding="utf-8"), re.S)
    names: dict = {}
    exec("\n".join(blocks), names)
    assert names["seen"]["entropy"].shape == (2, 20, 1, 35) and names["run"].records["entropy"].shape == (3, 1)
    assert (tmp_path / "out" / "my.run").exists()


def test_code_on_galore_runs_as_pasted(capsys):
    text = (DOCS / "galore.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec("\n".join(blocks), names)
    printed = re.search(r"```\n(parameter .*?)```", text, re.S)[1]
    assert capsys.readouterr().out == printed and names["tx"].init


def test_a_variant_and_an_instrument_of_the_documents_run_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "laboratory.md").read_text(encoding="utf-8")
    files = {name: code for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.S)}
    assert len(files["peaked.py"].splitlines()) <= 10 and len(files["units.py"].splitlines()) <= 50
    for name, code in files.items():
        Path(name).write_text(code, encoding="utf-8")
    commands = [line for line in text.splitlines() if line.startswith("jaxdyn lab") and ".py:" in line]
    assert len(commands) == 2
    for line in commands:
        words = shlex.split(line)[1:]
        for option, value in {"--steps": "20", "--seeds": "2", "--width": "8", "--layers": "1"}.items():  # in place of theirs
            place = words.index(option) if option in words else len(words)
            words[place : place + 2] = [option, value]
        assert cli.main([*words, "--json"]) == 0
        cells = json.loads(capsys.readouterr().out)["cells"]
        assert all(np.isfinite(cell["error"]) for cell in cells)
    units = {cell["variant"]: cell["error"] for cell in cells}
    assert [name for name, error in units.items() if error > 0.05] == ["mlp=plain, activation=gelu"] and len(units) == 4
    (python,) = re.findall(r"```python\n(import jaxdyn as jd\n.*?)```", text, re.S)
    names: dict = {}
    exec(python.replace("width=16, steps=100", "width=8, layers=1, steps=20"), names)
    assert len(names["frame"]) == 4 and set(names["ds"].measured_balance.dims) >= {"lr", "seed", "time"}


def test_an_instrument_is_watched_as_the_documents_say():
    (code,) = re.findall(r"```python\n(found = jd.lab.*?)```", (DOCS / "laboratory.md").read_text(encoding="utf-8"), re.S)
    names: dict = {"jd": jd}
    exec(code.replace("width=16, steps=100", "width=8, layers=1, steps=20"), names)
    assert [cell.verdict for cell in names["cells"]] == ["measured", "measured"]
    assert set(names["weight"].dims) == {"seed", "time", "sinks_layer"}
    assert [cell.verdict for cell in names["found"].cell("sinks", "attention=sigmoid")] == ["not asked"]


def test_a_sweep_of_the_documents_runs_as_pasted(tmp_path, monkeypatch, capsys):
    """Its trial, its commands, and its Python; Optuna's part if it is installed."""
    text = (DOCS / "quickstart.md").read_text(encoding="utf-8").split("## Sweep a trial")[1].split("## Read")[0]
    mine, python, search = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "mine.py").write_text(mine, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    commands = [shlex.split(line, comments=True)[1:] for line in text.splitlines() if line.startswith("jaxdyn sweep")]
    assert len(commands) == 3 and all(cli.main([*words, "--workers", "1"]) == 0 for words in commands)
    assert json.loads(capsys.readouterr().out)["runs"] == 16 and (tmp_path / "lr" / "runs.csv").is_file()
    names: dict = {}
    exec(python, names)
    assert dict(names["ds"].final.sizes) == {"point": 64, "seed": 4} and names["best"].size == 1
    pytest.importorskip("optuna", reason="the example with Optuna needs the library optuna, on which nothing here depends")
    exec(search, names)
    assert 1e-3 <= names["study"].best_params["lr"] <= 1.0 and len(names["study"].trials) == 32


@pytest.mark.slow
def test_code_on_caches_runs_as_pasted():
    names: dict = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", (DOCS / "cache.md").read_text(encoding="utf-8"), re.S)), names)
    assert names["new"].shape == (20,) and names["more"].shape == (10,)


@pytest.mark.slow
def test_the_tests_of_the_documents_pass_in_a_project_of_ones_own(tmp_path):
    """With the claim of the documents as the project's module: its own setting and trial, by the names that the page uses."""
    (claim,) = re.findall(r"```python\n(import jax\n.*?)```", (DOCS / "write_your_own_claim.md").read_text(encoding="utf-8"), re.S)
    (tests,) = re.findall(r"```python\n(.*?)```", (DOCS / "testing.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "my_claims.py").write_text(claim, encoding="utf-8")
    (tmp_path / "test_mine.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_mine.py"]
    own = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "PYTEST_ADDOPTS": ""}  # the options of this suite are not its
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **own}, capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    """Every page is there, every link leads somewhere, the API pages have their functions."""
    site = tmp_path / "site"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=DOCS.parent, env=environment, capture_output=True, encoding="utf-8")
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
        *(f"api/{name}" for name in ("settings", "claims", "judging", "running", "results", "theories")),
        "api/by_task",
        "tutorial",
        "jax",
        "notebooks/first_claim",
        "notebooks/grokking",
        "theories",
        "theories/joma",
    }
    linked = (site / "theories" / "joma" / "index.html").read_text(encoding="utf-8")
    (anchor,) = set(re.findall(r'href="\.\./\.\./catalogue/#(jomafig2)"', linked))
    assert f'id="{anchor}"' in (site / "catalogue" / "index.html").read_text(encoding="utf-8")
    assert ".py" not in linked.split("Run it")[0], "no link leads out of the site"
    assert not any("arithmatex" in path.read_text(encoding="utf-8") for path in site.rglob("index.html")), "formulas are MathML"
    assert "jaxdyn.flow.solve" in (site / "api" / "dynamics" / "index.html").read_text(encoding="utf-8")
