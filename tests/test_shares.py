"""Which slow tests ``--slow-share`` selects."""

import tomllib
from pathlib import Path

import pytest

from tests import shares

FILES = [f"test_{letter}.py" for letter in "abcdefghijkl"]
ROOT = Path(__file__).parents[1]
INI = f"""
[pytest]
addopts = -p tests.shares -m '{shares.DEFAULT}'
markers = slow: heavy
"""
CODE = """
import pytest

def test_fast():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("n", range(2))
def test_slow(n):
    pass
"""


@pytest.fixture
def project(pytester):
    """Twelve files with a fast test and two slow ones each."""
    pytester.makeini(INI)
    pytester.makepyfile(**{Path(name).stem: CODE for name in FILES})
    return pytester


def selected(project, *words):
    lines = project.runpytest_inprocess("--collect-only", "-q", *words).outlines
    return [line for line in lines if "::" in line]


def test_the_default_selection_is_that_of_the_project():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert f"-m '{shares.DEFAULT}'" in options["addopts"]


def test_without_a_day_no_slow_test_is_selected(project):
    assert selected(project) == [f"{name}::test_fast" for name in FILES]


def test_seven_days_select_every_slow_test_once_and_whole_files(project):
    days = [selected(project, "--slow-share", str(day)) for day in range(7)]
    slow = [[line for line in lines if "slow" in line] for lines in days]
    assert all(len(lines) - len(heavy) == len(FILES) for lines, heavy in zip(days, slow, strict=True))
    assert sorted(sum(slow, [])) == [f"{name}::test_slow[{n}]" for name in FILES for n in range(2)]
    files = [{line.partition("::")[0] for line in lines} for lines in slow]
    assert sum(map(len, files)) == len(FILES) and sum(map(bool, files)) > 3


def test_a_marker_expression_still_applies(project):
    day = str(shares.share("test_a.py"))
    chosen = selected(project, "--slow-share", day, "-m", "slow")
    assert "test_a.py::test_slow[0]" in chosen and not any("fast" in line for line in chosen)


def test_there_is_no_eighth_day(project):
    assert project.runpytest_inprocess("--slow-share", "7").ret == pytest.ExitCode.USAGE_ERROR
