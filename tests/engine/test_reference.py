"""Functions of users' files and notebooks: found again, run anew when they change."""

import itertools
import linecache
import sys
import types

import pytest

import jaxdyn as jd
from jaxdyn.engine.reference import load_file, ref_to

NOTEBOOK = """
import jaxdyn as jd
import jax.numpy as jnp

@jd.setting
class Cell:
    rate: jd.Swept = 1.0

def trial(s, key):
    return jd.observables(measured={{"x": s.rate * {factor}}})
"""


@pytest.fixture
def notebook(monkeypatch):
    """A module without a file, as notebooks have, in which cells are run again."""
    module = types.ModuleType("a_notebook")
    monkeypatch.setitem(sys.modules, "a_notebook", module)

    number = itertools.count()

    def run_cell(text):
        name = f"<cell {next(number)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), module.__dict__)
        return module

    return run_cell


def test_a_trial_defined_again_in_a_notebook_is_run_anew(notebook):
    for factor in (2, 3):
        cell = notebook(NOTEBOOK.format(factor=factor))
        assert jd.sweep(cell.trial, jd.grid(cell.Cell)).measured_x.item() == factor


def test_a_trial_of_a_notebook_can_be_stored(notebook, tmp_path):
    for factor in (2, 3):
        cell = notebook(NOTEBOOK.format(factor=factor))
        assert jd.sweep(cell.trial, jd.grid(cell.Cell), out=tmp_path / "out").measured_x.item() == factor


def test_a_trial_without_source_is_run_and_run_anew_when_it_changes(monkeypatch, tmp_path):
    """Typed at a prompt or read from a pipe: no file, and no source that could be read back."""
    module = types.ModuleType("a_prompt")
    monkeypatch.setitem(sys.modules, "a_prompt", module)
    for factor in (2, 3):
        exec(compile(NOTEBOOK.format(factor=factor), "<stdin>", "exec"), module.__dict__)
        grid = jd.grid(module.Cell)
        assert jd.sweep(module.trial, grid).measured_x.item() == factor
        assert jd.sweep(module.trial, grid, out=tmp_path / "out").measured_x.item() == factor


def test_a_trial_imported_from_a_helper_can_be_found_by_workers(tmp_path):
    """The reference of a function that is not installed carries its file."""
    (tmp_path / "trials_beside.py").write_text("def trial(s, key): ...\n")
    (tmp_path / "claims_here.py").write_text("from trials_beside import trial\n")
    module = load_file(tmp_path / "claims_here.py")
    ref = ref_to(module.trial)
    sys.modules.pop("trials_beside")
    assert ref.path is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "bad.py, line 1: invalid syntax"),
        ("x = 1\nraise RuntimeError('boom')\n", "bad.py cannot be imported: RuntimeError: boom"),
        ("import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
        ("import sys\nsys.exit(3)\n", "bad.py cannot be imported"),
        ("x = '\x00'\n", "bad.py"),
    ],
)
def test_files_that_cannot_be_imported_are_named(tmp_path, text, message):
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(jd.UsageError, match=message):
        load_file(file)


def test_an_error_in_an_imported_helper_is_placed_there(tmp_path):
    (tmp_path / "wrong_helper.py").write_text("\n\ndef f(:\n")
    (tmp_path / "good.py").write_text("import wrong_helper\n")
    with pytest.raises(jd.UsageError, match="wrong_helper.py, line 3"):
        load_file(tmp_path / "good.py")


def test_missing_files_and_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(jd.UsageError, match="no such file"):
        load_file(tmp_path / "missing.py")
    with pytest.raises(jd.UsageError, match="no such file"):
        load_file(tmp_path)
    (tmp_path / "claims.txt").write_text("CLAIMS = []")
    with pytest.raises(jd.UsageError, match=r"must end in .py"):
        load_file(tmp_path / "claims.txt")
