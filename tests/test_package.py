"""What ``import jaxdyn as jd`` offers, and when it is loaded."""

import ast
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import jaxdyn as jd


def test_dir_shows_the_names():
    shown = dir(jd)
    assert {"verify", "verify_many", "sweep", "grid", "Study", "plotting", "stats", "train", "flow", "__version__"} <= set(shown)
    assert set(jd.__all__) <= set(shown) and "TYPE_CHECKING" not in shown
    assert all(getattr(jd, name) is not None for name in shown)


def test_version():
    assert jd.__version__ == version("jaxdyn")


@pytest.mark.parametrize(
    "name", ["plotting", "stats", "train", "flow", "metrics", "linalg", "models", "nn", "optim", "data", "text", "status"]
)
def test_submodules_are_attributes(name):
    assert getattr(jd, name).__name__ == f"jaxdyn.{name}"


def test_other_names_are_none():
    with pytest.raises(AttributeError, match="module 'jaxdyn' has no attribute 'nothing'"):
        _ = jd.nothing


def test_nothing_heavy_is_imported_before_it_is_used():
    code = (
        "import sys\nimport jaxdyn as jd\nassert jd.__version__ and dir(jd)\n"
        "heavy = {'jax', 'numpy', 'xarray', 'matplotlib', 'rich'} & set(sys.modules)\nassert not heavy, heavy\n"
        "assert jd.stats.__name__ == 'jaxdyn.stats'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "jaxdyn", "--version"], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"jaxdyn {jd.__version__}\n", "")


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ENCODINGS = """
import importlib, json, pkgutil, sys, warnings
warnings.simplefilter("ignore", EncodingWarning)  # of other packages
warnings.filterwarnings("error", category=EncodingWarning, module="jaxdyn")
import jaxdyn
from jaxdyn.cli.main import main
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.judging.digest import digest
for module in pkgutil.walk_packages(jaxdyn.__path__, "jaxdyn."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
digests = {claim.id: digest(claim) for claim in registry.select([])}
open("facts.json", "w", encoding="utf-8").write(json.dumps([digests, registry.catalogue()]))
words = "list", "show lyu.path", "verify scal.closed_form --workers 1 --out out", "report out"
assert [main(each.split()) for each in words] == [0] * len(words)
"""


@pytest.mark.slow
def test_the_locale_decides_nothing(tmp_path):
    """Files are read and written as UTF-8; what the terminal cannot show is printed as codes."""
    facts = []
    for name, variables in (("ascii", ASCII), ("utf8", {"PYTHONUTF8": "1"})):
        (tmp_path / name).mkdir()
        command, env = [sys.executable, "-X", "warn_default_encoding", "-c", ENCODINGS], os.environ | variables
        done = subprocess.run(command, cwd=tmp_path / name, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        facts.append(json.loads((tmp_path / name / "facts.json").read_text(encoding="utf-8")))
    assert facts[0] == facts[1] and len(facts[0][0]) > 100


TEXT = {"read_text", "write_text"}


def without_encoding(file):
    """Lines that read, write or decode text without saying how; the linter sees only what it knows to be a path."""
    calls = [node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Call)]
    for call in calls:
        names = {keyword.arg for keyword in call.keywords}
        text = isinstance(call.func, ast.Attribute) and call.func.attr in TEXT
        if (text or names & {"text", "universal_newlines"} and "capture_output" in names) and "encoding" not in names:
            yield f"{file}:{call.lineno}"


def test_every_text_has_its_encoding():
    root = Path(__file__).parents[1]
    folders = [root / name for name in ("jaxdyn", "tests", "benchmarks", "experiments", "examples") if (root / name).is_dir()]
    files = [root / "setup.py", *(file for folder in folders for file in folder.rglob("*.py"))]
    assert [line for file in files for line in without_encoding(file)] == []


def narrows(test):
    """Whether a condition only tells a type checker what cannot be otherwise: ``x is not None`` or ``isinstance(x, ...)``."""
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) and ast.unparse(test.comparators[0]) == "None"


def test_nothing_rests_on_statements_that_an_optimised_interpreter_leaves_out():
    package = Path(jd.__file__).parent
    found = [
        f"{file.relative_to(package)}:{node.lineno}"
        for file in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and not narrows(node.test)
    ]
    assert found == []
