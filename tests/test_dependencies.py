"""What an installation needs: every import is declared, extras are imported late, ``import jaxdyn`` loads nothing heavy."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from jaxdyn.cli.main import main as cli
from jaxdyn.data import digits, graphs
from jaxdyn.errors import UsageError, missing

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED = {"math-core": "math_core", "scikit-learn": "sklearn"}  # the name under which a distribution is imported, if it differs
WITH = {  # they come with it
    "PIL": "matplotlib",
    "markupsafe": "jinja2",
    "equinox": "diffrax",
    "jaxlib": "jax",
    "optimistix": "diffrax",
    "pandas": "xarray",
    "traitlets": "anywidget",
}
EXTRAS = ("completion", "dask", "docs", "explore", "models", "suite", "testing", "text")


def names(requirements):
    """The import names of a list of requirements."""
    found = [re.match(r"[\w.-]+", one)[0] for one in requirements]
    return {IMPORTED.get(name, name) for name in found}


HARD = names(PROJECT["dependencies"])
SOFT = set().union(*(names(PROJECT["optional-dependencies"][extra]) for extra in EXTRAS))


def imports(file, top_level):
    """Packages that a file imports, when it is imported itself or anywhere."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = tree.body if top_level else list(ast.walk(tree))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names) - {"jaxdyn"}


def test_what_the_package_imports_is_declared():
    files = sorted((ROOT / "jaxdyn").rglob("*.py"))
    eager = set().union(*(imports(file, top_level=True) for file in files if file.name != "testing.py"))
    assert {WITH.get(name, name) for name in eager} <= HARD
    assert {WITH.get(name, name) for file in files for name in imports(file, top_level=False)} <= HARD | SOFT


def test_one_extra_serves_the_readme_whole():
    """It has what README's commands take beyond the package: claims on graphs, the explorer, published models, the plugin."""
    extras = PROJECT["optional-dependencies"]
    (whole,) = extras["all"]
    inner = set(re.fullmatch(r"jaxdyn\[(.*)\]", whole)[1].split(","))
    assert inner >= {"suite", "explore", "models", "testing"} and inner <= extras.keys()
    assert "pip install '.[all]'" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_hard_dependency_is_imported():
    """With the engine through which xarray reads and writes files."""
    assert HARD - {"h5netcdf", "h5py"} <= set().union(*(imports(f, top_level=False) for f in (ROOT / "jaxdyn").rglob("*.py")))


def test_a_plain_installation_stays_as_small_as_it_is():
    """The packages that the hard dependencies bring, themselves among them; most of the rest are flax's."""
    todo, brought = [Requirement(one) for one in PROJECT["dependencies"]], {}
    while todo:
        one = todo.pop()
        if brought.setdefault(one.name.lower().replace("_", "-"), set()) >= (asked := one.extras or {""}):
            continue
        brought[one.name.lower().replace("_", "-")] |= asked
        for inner in map(Requirement, requires(one.name) or []):
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in asked):
                todo.append(inner)
    assert len(brought) <= 55, sorted(brought)


def test_the_plugin_imports_the_package_only_where_claims_are_asked_for(tmp_path):
    """Else hooks on its import, such as jaxtyping's, come too late."""
    (tmp_path / "test_own.py").write_text(
        "import sys\n\ndef test_own():\n    assert 'jaxdyn' not in sys.modules\n", encoding="utf-8"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # of the suite around this test
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, env=env, capture_output=True, encoding="utf-8")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_importing_jaxdyn_imports_nothing_else():
    """Less than a second of CPU: the standard library alone, and neither JAX nor NumPy."""
    code = (
        "import sys\nbefore = set(sys.modules)\nimport jaxdyn\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)\n"
        "assert new == {'jaxdyn'}, new\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_verifying_imports_no_network_library():
    """``jd.verify`` by itself takes JAX and xarray; networks, optimizers, solvers and pages are imported by what uses them."""
    late = {"flax", "optax", "diffrax", "equinox", "matplotlib", "jinja2", "math_core", "sklearn", "networkx", "chex", "hypothesis"}
    code = f"import sys\nimport jaxdyn as jd\njd.verify\nassert not {late!r} & set(sys.modules), {late!r} & set(sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_a_missing_library_is_one_sentence(monkeypatch, capsys):
    assert str(missing("this", "that", "extra")) == "this needs the library that: pip install 'jaxdyn[extra]'"
    monkeypatch.setitem(sys.modules, "networkx", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    monkeypatch.setitem(sys.modules, "shtab", None)
    digits.load.cache_clear()
    with pytest.raises(UsageError, match=r"listing graphs .* needs the library networkx: pip install 'jaxdyn\[suite\]'"):
        graphs.extended(())  # which keeps nothing of other tests
    with pytest.raises(UsageError, match=r"digits needs the library scikit-learn: pip install 'jaxdyn\[suite\]'"):
        digits.load()
    assert cli(["completion", "bash"]) == 2
    assert capsys.readouterr().err == "jaxdyn: completion needs the library shtab: pip install 'jaxdyn[completion]'\n"


def pinned(python, file="constraints.txt"):
    """The versions that a file of constraints has for a version of Python."""
    lines = [line for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    wanted = [one for one in map(Requirement, lines) if one.marker is None or one.marker.evaluate({"python_version": python})]
    assert len({one.name for one in wanted}) == len(wanted), "one version of each"
    return {one.name: str(one.specifier) for one in wanted}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_plugins_are_pinned_to_the_version_of_jax(python):
    pins = pinned(python)
    assert {pins[name] for name in ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda13-pjrt")} == {pins["jax"]}
    assert "libtpu" in pins and not set(pins) & set(pinned(python, "constraints-cuda13.txt"))


@pytest.fixture
def make(tmp_path):
    """What `make` would do with an environment of its own, as lines; the error where it refuses."""
    if shutil.which("make") is None:
        pytest.skip("make is not there")
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "EXTRA", "VENV")}

    def plan(*words):
        done = subprocess.run(["make", "-n", *words, f"VENV={tmp_path}"], cwd=ROOT, env=own, capture_output=True, encoding="utf-8")
        return done.stdout.splitlines() if done.returncode == 0 else done.stderr

    return plan


def installs(lines):
    return [line.partition("-m pip install ")[2] for line in lines if " pip install " in line]


@pytest.mark.parametrize("extra", ["cuda13", "tpu"])
def test_make_installs_what_an_accelerator_needs_and_keeps_it(make, tmp_path, extra):
    assert extra in PROJECT["optional-dependencies"]
    (tmp_path / ".ready").touch()
    assert installs(make("verify")) == []
    (line,) = installs(make("verify", f"EXTRA={extra}"))
    assert line.endswith(f"-e '.[dev,{extra}]'") and ("-c constraints-cuda13.txt" in line) == (extra == "cuda13")
    (tmp_path / f".ready-{extra}").touch()
    assert installs(make("verify", f"EXTRA={extra}")) == installs(make("test")) == []
    os.utime(tmp_path / f".ready-{extra}", (0, 0))  # older than the pinned versions
    assert installs(make("test")) == [line]


def test_make_refuses_other_extras(make):
    for extra in ("cuda", "cuda13 tpu"):  # one machine, one accelerator
        assert f"EXTRA={extra} is not allowed: it is cuda13 or tpu" in make("verify", f"EXTRA={extra}")
