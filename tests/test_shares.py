"""Which slow tests ``--slow-share`` selects."""

import tomllib
from pathlib import Path

import pytest

from tests import shares

FILES = ["test_spread.py", *(f"test_{letter}.py" for letter in "abcdefghijkl")]
SLOW = {name: 60 if name == "test_spread.py" else 2 for name in FILES}
ROOT = Path(__file__).parents[1]
INI = f"""
[pytest]
addopts = -p tests.shares -m '{shares.DEFAULT}'
markers =
    slow: heavy
    thinned: heavy but for the first
"""
CODE = """
import pytest

def test_fast():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("n", range({}))
def test_slow(n):
    pass
"""


@pytest.fixture
def project(pytester):
    """Files with one fast test and two slow ones each, and one with many."""
    pytester.makeini(INI)
    pytester.makepyfile(**{Path(name).stem: CODE.format(count) for name, count in SLOW.items()})
    return pytester


def selected(project, *words):
    lines = project.runpytest_inprocess("--collect-only", "-q", *words).outlines
    return [line for line in lines if "::" in line]


def test_the_default_selection_is_that_of_the_project():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert f"-m '{shares.DEFAULT}'" in options["addopts"]


def test_without_a_day_no_slow_test_is_selected(project):
    assert sorted(selected(project)) == sorted(f"{name}::test_fast" for name in FILES)


def test_seven_days_select_every_slow_test_once(project):
    days = [selected(project, "--slow-share", str(day)) for day in range(7)]
    slow = [[line for line in lines if "slow" in line] for lines in days]
    assert all(len(lines) - len(heavy) == len(FILES) for lines, heavy in zip(days, slow, strict=True))
    assert sorted(sum(slow, [])) == sorted(f"{name}::test_slow[{n}]" for name, count in SLOW.items() for n in range(count))
    names = [{line.partition("::")[0] for line in lines} for lines in slow]
    assert all("test_spread.py" in each for each in names), "a file of many tests is spread over the days"
    assert sum(map(len, names)) == len(FILES) - 1 + 7, "every other file has one day"


def test_a_marker_expression_still_applies(project):
    days = [selected(project, "--slow-share", str(day), "-m", "slow") for day in range(7)]
    assert all("slow" in line for lines in days for line in lines) and sum(map(len, days)) == sum(SLOW.values())


THINNED = """
import pytest

@pytest.mark.thinned
@pytest.mark.parametrize("n", range(4))
def test_each(n):
    pass
"""


def test_of_a_thinned_test_the_first_parameter_is_no_slow_one(pytester):
    pytester.makeini(INI)
    pytester.makepyfile(test_thinned=THINNED)
    assert selected(pytester) == ["test_thinned.py::test_each[0]"]
    assert selected(pytester, "-m", "slow") == [f"test_thinned.py::test_each[{n}]" for n in (1, 2, 3)]
    assert selected(pytester, "-m", "") == [f"test_thinned.py::test_each[{n}]" for n in range(4)]
    days = [selected(pytester, "--slow-share", str(day)) for day in range(7)]
    assert sorted(map(len, days)) == [1] * 6 + [4], "one file has one day"


def test_there_is_no_eighth_day(project):
    assert project.runpytest_inprocess("--slow-share", "7").ret == pytest.ExitCode.USAGE_ERROR
