"""Every script of ``experiments/``: its help, which says what it is for and what each option means; and all of it without the runs.

Of those that sweep, from their grids to their tables and figures: trials are traced, so that names, axes and shapes are their own;
in place of the results of runs stand numbers between 0.2 and 0.8, another one for each run and entry. What a script shows is wrong
then, and what it reads, draws and writes is not.
"""

import re
import runpy
import sys

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

from jaxdyn.engine.programs.tracing import traced
from jaxdyn.engine.runs import sweep
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.status import OK
from tests.conftest import EXPERIMENTS

SWEEPING = [path.stem for path in sorted(EXPERIMENTS.glob("*.py")) if "sweep(" in path.read_text(encoding="utf-8")]
OF_DATA = {  # what these show depends on what the runs give
    "cogo_decouple": "a slope in the width is fitted to what is positive",
    "li2_fig5": "a curve is fitted to shares that rise",
    "margin_directions": "networks that have separated their data are drawn",
    "rev_training": "keys that attention has grown are listed",
    "snap_thm3_map": "a table has a column for each overlap that all rows share",
}
OPTION = re.compile(r"-\S+[^\n]*?(?: {2,}|\n +)(.*)", re.DOTALL)  # flags with their values, then the description
WORDS = re.compile(r"(?!of |\()\w+ \S")  # a description names something
COST = {"compile_seconds": 0.0, "run_seconds": 0.0, "cpu_seconds": 0.0}


def of_shape(shape, dtype):
    """Numbers for an array of results: rising along its entries, and back again, so that no two runs are alike."""
    share = 0.2 + 0.6 * np.abs(np.sin(np.arange(1, 1 + int(np.prod(shape))))).reshape(shape)
    return share.astype(dtype) if np.issubdtype(dtype, np.inexact) else (share > 0.5).astype(dtype)


def without_running(chunk):
    """A chunk's results, by the shapes that its trial returns."""
    one = traced(chunk.program).results
    runs = len(chunk.seeds), 1 if chunk.zipped else len(chunk.cells)
    named = {
        ("" if kind == "recorded" else f"{kind}_") + name: item
        for kind in ("predicted", "measured", "recorded", "assumed")
        for name, item in getattr(one, kind).items()
    }
    values = {name: of_shape((*runs, *item.value.shape), item.value.dtype) for name, item in named.items()}
    dims = {name: item.dims for name, item in named.items()}
    status = np.full(runs, OK, np.int32)
    return Arrays({**values, "status": status}, {**dims, "status": ()}, dict(one.coords), COST | {"runs": chunk.runs}, chunk.zipped)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:constrained_layout")  # of numbers that no runs would give
@pytest.mark.parametrize("name", [name for name in SWEEPING if name not in OF_DATA])
@pytest.mark.usefixtures("script")  # scripts import one another
def test_a_script_reads_draws_and_writes_what_its_trials_return(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "run_chunk", without_running)
    monkeypatch.setattr(sweep, "prepare", lambda chunk: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"experiments/{name}.py", "--out", "out"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(EXPERIMENTS / f"{name}.py"), run_name="__main__")
    assert stop.value.code == 0
    assert any(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    plt.close("all")
    jax.clear_caches()


def test_exceptions_are_scripts():
    assert OF_DATA.keys() <= set(SWEEPING)


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
