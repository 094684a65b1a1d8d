"""The pytest plugin, used by another project's tests."""

import subprocess
import sys
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


OPTIMISED = """
import jax, jaxdyn as jd, numpy as np
from jaxdyn.engine.base.reference import load_file
from jaxdyn.testing import assert_claim, assert_trial

assert False, "this interpreter leaves out statements assert"
toys = load_file(TOYS)

@jd.setting
class Walk:
    rate: jd.Swept = 0.1
    dtype: str = "float32"

def drawn(s, key):
    x = jax.random.normal(jax.random.fold_in(key, (s.rate * 100).astype(int)), (), "float32")
    return jd.observables(predicted={"x": x}, measured={"x": x})

def wide(s, key):
    x = jax.random.normal(key, (4,), "float64")
    return jd.observables(recorded={"x": jd.named(x, "time")})

def nothing(s, key):
    return s.rate

draws = iter(range(9))

def another(s, key):
    x = jax.pure_callback(lambda: np.float32(next(draws)), jax.ShapeDtypeStruct((), "float32"))
    return jd.observables(predicted={"x": x}, measured={"x": x})

wrong = next(c for c in toys.CLAIMS if c.id == "toy.wrong")
checks = [lambda: assert_claim(wrong)] + [lambda t=t: assert_trial(t, Walk()) for t in (drawn, wide, nothing, another)]
for check in checks:
    try:
        check()
    except AssertionError as error:
        print(str(error).partition("\\n")[0])
"""


def test_an_interpreter_without_assertions_checks_as_much():
    code = OPTIMISED.replace("TOYS", repr(str(TOYS)))
    out = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    said = [
        "toy.wrong: refuted",
        "random numbers depend on",
        "arrays of float64",
        "the trial does not return",
        "two runs of one key",
    ]
    assert [line for line, start in zip(out.splitlines(), said, strict=True) if not line.startswith(start)] == []


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
        (["--jaxdyn", "toy.decay", "--jaxdyn-load", TOYS, "--jaxdyn-scale", "huge"], "--jaxdyn-scale huge is not allowed"),
        (["--jaxdyn-load", TOYS], "--jaxdyn-load is not allowed without --jaxdyn PATTERN"),
        (["--jaxdyn-scale", "paper"], "--jaxdyn-scale is not allowed without --jaxdyn PATTERN"),
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
