"""What ``import jaxdyn as jd`` offers, and when it is loaded."""

import subprocess
import sys
from importlib.metadata import version

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
