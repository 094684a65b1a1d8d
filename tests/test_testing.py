"""The pytest plugin, used by another project's tests."""

from pathlib import Path

import pytest

import jaxdyn.engine.verification.verify  # noqa: F401 - pytest in this process forgets what is first imported inside it
from jaxdyn import theories
from jaxdyn.engine.base.reference import load_file
from jaxdyn.testing import assert_claim

TOYS = Path(__file__).parent / "engine" / "toys.py"
load_file(TOYS)


@pytest.fixture
def project(pytester, monkeypatch):
    """An empty project in whose folder pytest is run (in this process) with only the toys as claims."""
    monkeypatch.setattr(theories, "__path__", [])
    ini = pytester.makeini("[pytest]")
    return lambda *words: pytester.runpytest_inprocess("-p", "no:cacheprovider", "-c", ini, *map(str, words))


def test_assert_claim():
    toys = load_file(TOYS)
    assert_claim(toys.CLAIMS[0])
    wrong = next(c for c in toys.CLAIMS if c.id == "toy.wrong")
    with pytest.raises(AssertionError, match=r"(?s)toy.wrong: refuted \(expected upheld\).*FAIL relative error"):
        assert_claim(wrong)


def test_claims_are_tests(project):
    result = project("--jaxdyn", "toy.decay*", "--jaxdyn-load", TOYS, "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*toy.decay PASSED*", "*toy.decay_as_printed PASSED*"])
    assert result.ret == 0


def test_a_failing_claim_shows_its_checks_and_no_traceback(project):
    result = project("--jaxdyn", "toy.wrong", "--jaxdyn", "toy.toothless", "--jaxdyn", "toy.raises", "--jaxdyn-load", TOYS)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*toy.wrong: refuted (expected upheld)*", "*FAIL relative error: *, bound at most 1e-09*"])
    result.stdout.fnmatch_lines(["*control 10% off: NOT rejected*"])
    result.stdout.fnmatch_lines(["*RuntimeError: the judge stumbled*"])
    assert "verify.py" not in result.stdout.str() and "FAILED" in result.stdout.str()


def test_an_error_names_its_place_and_the_traceback_is_shown_when_asked_for(project):
    words = ["--jaxdyn", "toy.raises", "--jaxdyn-load", TOYS]
    result = project(*words)
    result.stdout.fnmatch_lines(["*RuntimeError: the judge stumbled (*toys.py:* in raises)*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    project(*words, "--tb=long").stdout.fnmatch_lines(["*Traceback*", "*in raises*"])


def test_claims_run_beside_a_projects_own_tests(project, pytester):
    pytester.makepyfile("def test_own(): pass")
    project("--jaxdyn", "toy.decay", "--jaxdyn-load", TOYS).assert_outcomes(passed=2)
    project().assert_outcomes(passed=1)


def test_claims_can_be_deselected_by_name(project):
    project("--jaxdyn", "toy.decay*", "--jaxdyn-load", TOYS, "-k", "printed").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jaxdyn", "toy.nothing", "--jaxdyn-load", TOYS], "no claim matches 'toy.nothing'"),
        (["--jaxdyn", "toy", "--jaxdyn-load", "missing.py"], "missing.py: no such file"),
        (["--jaxdyn", "toy.decay", "--jaxdyn-load", TOYS, "--jaxdyn-scale", "huge"], "quick or paper"),
    ],
)
def test_wrong_use_is_told_in_one_sentence(project, words, message):
    result = project(*words)
    assert result.ret != 0
    text = result.stdout.str() + result.stderr.str()
    assert message in text and "Traceback" not in text and "INTERNALERROR" not in text


@pytest.mark.slow
def test_the_plugin_does_not_import_jax_until_it_is_asked(pytester):
    pytester.makepyfile("import sys\n\ndef test_light():\n    assert 'jax' not in sys.modules\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:jaxtyping").assert_outcomes(passed=1)


def test_a_file_to_load_is_found_from_where_pytest_was_started(project, pytester):
    (pytester.path / "mine.py").write_text(TOYS.read_text(encoding="utf-8"), encoding="utf-8")
    (pytester.path / "sub").mkdir()
    pytester.makeconftest("import os\n\ndef pytest_configure(config):\n    os.chdir('sub')\n")
    project("--jaxdyn", "toy.decay", "--jaxdyn-load", "mine.py", "--collect-only", "-q").stdout.fnmatch_lines(
        ["mine.py::toy.decay"]
    )


def test_a_printed_id_can_be_given_back(project, pytester):
    (pytester.path / "mine.py").write_text(TOYS.read_text(encoding="utf-8"), encoding="utf-8")
    pytester.makepyfile("def test_own(): pass\ndef test_other(): pass")
    result = project("mine.py::toy.decay", "test_a_printed_id_can_be_given_back.py::test_own", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*mine.py::toy.decay PASSED*"])


def test_claims_are_counted(project, pytester):
    pytester.makepyfile("def test_own(): pass")
    words = ["--jaxdyn", "toy.decay*", "--jaxdyn-load", TOYS]
    project(*words, "-k", "nothing").stdout.fnmatch_lines(["collected 3 items / 3 deselected / 0 selected"])
    project(*words, "-k", "own").stdout.fnmatch_lines(["collected 3 items / 2 deselected / 1 selected"])
