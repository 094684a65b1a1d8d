"""Errors as text: what is said of them, and that they travel."""

import json
import pickle
import re
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn.engine.base.failure import CURES, Failure, installed, shown_path, source_file


def caught(function, *args, author=None):
    try:
        function(*args)
    except Exception as error:
        return Failure.of(error, author)
    raise AssertionError("nothing was raised")


def stumble():
    raise RuntimeError("over a stone\nand a second line")


def traced(x):
    return 1.0 if x > 0 else 2.0


def test_type_message_and_place():
    failure = caught(stumble)
    assert (failure.kind, failure.message) == ("RuntimeError", "over a stone")
    assert failure.place.endswith(f"test_failure.py:{stumble.__code__.co_firstlineno + 1} in stumble")
    assert str(failure) == f"RuntimeError: over a stone ({failure.place})"
    assert "and a second line" in failure.traceback and "Traceback" in failure.traceback


def test_the_place_is_in_the_authors_file_not_in_a_library():
    assert caught(jax.jit(traced), 1.0).place.endswith(" in traced")
    assert caught(lambda: jnp.zeros(2) @ jnp.zeros(3)).place.endswith(" in <lambda>")


def test_a_result_that_was_refused_is_placed_where_its_function_begins():
    def refuse():
        raise ValueError("no")

    failure = Failure.of(ValueError("no"), refuse)
    assert failure.place.endswith(f":{refuse.__code__.co_firstlineno} in refuse")
    assert Failure.of(ValueError("no")).place is None


def test_an_error_without_words():
    assert caught(lambda: [][1] if False else (_ for _ in ()).throw(KeyError())).message == "no message"


def test_errors_travel_whole_if_they_can():
    failure = caught(stumble)
    there = pickle.loads(pickle.dumps(failure))
    assert there == failure and isinstance(there.exception(), RuntimeError) and str(there.exception()) == str(failure.error)


class Stubborn(Exception):
    """Holds what does not travel, whichever way exceptions are pickled."""

    def __init__(self, message):
        super().__init__(message)
        self.lock = threading.Lock()


def stubborn():
    raise Stubborn("tracer in here")


def test_errors_that_cannot_be_unpickled_travel_as_text():
    failure = caught(stubborn)
    with pytest.raises(TypeError):
        pickle.dumps(failure.error)
    there = pickle.loads(pickle.dumps(failure))
    assert there == failure and there.error is None
    assert isinstance(there.exception(), RuntimeError) and "Stubborn: tracer in here" in str(there.exception())


def test_tracer_errors_travel():
    there = pickle.loads(pickle.dumps(caught(jax.jit(traced), 1.0)))
    assert "TracerBoolConversionError" in str(there) and there.place.endswith(" in traced")


def announce():
    raise ValueError("the types differ:\n\n  * a is float64\n  * b is float32\n\nMore on this is in a manual.")


def test_what_a_colon_announces_is_said():
    assert caught(announce).message == "the types differ: * a is float64 * b is float32"


def test_an_error_on_the_runs_of_a_control_names_it():
    failure = caught(stumble)
    failure.error.part = "control 'large steps'"
    again = Failure.of(failure.error, stumble)
    assert again.place == f"{failure.place}, for control 'large steps'" and str(again).endswith(", for control 'large steps')")


def test_text_only():
    assert caught(stumble).text_only().error is None


def test_paths_as_people_know_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "mine.py") == "mine.py"
    assert shown_path(sys.modules["jaxdyn.engine.base.failure"].__file__) == "jaxdyn/engine/base/failure.py"
    assert shown_path("/elsewhere/mine.py") == "/elsewhere/mine.py"
    assert source_file(stumble) == __file__ and source_file(len) is None


@pytest.mark.parametrize("folder", ["other/lib/python3.11/site-packages/lib", "/usr/lib/python3/dist-packages/lib"])
def test_packages_of_any_environment_are_installed_and_checkouts_are_not(tmp_path, folder):
    assert installed(tmp_path / folder / "a.py") and installed(Path(json.__file__))
    assert not installed(tmp_path / "checkout" / "a.py")


# mistakes of newcomers, each with the line that has to be mended

DOCUMENT = (Path(__file__).parents[3] / "docs" / "write_your_own_claim.md").read_text(encoding="utf-8")
(CLAIM,) = re.findall(r"```python\n(import jax\n.*?)```", DOCUMENT, re.S)
REFUSED = {  # what is mistyped, by what, words of the message, and the text that begins on the line that is named
    "another argument": ('bounds="derived"', 'bound="derived"', "unexpected keyword argument 'bound'", "    jd.Claim("),
    "no source": (
        'source="arXiv:1312.6120, growth of one mode",',
        "",
        "missing 1 required keyword-only argument: 'source'",
        "    jd.Claim(",
    ),
    "another field": ("jd.grid(Mode, lam=", "jd.grid(Mode, lambd=", "Mode has no field 'lambd'; it has: lam, lr", "        quick="),
    "out of range": ("lr: jd.Swept = 0.01", "lr: jd.Swept = jd.field(0, above=0)", "lr is above 0", "@jd.setting"),
    "no control": (
        'controls={"unbalanced start": {"unbalance": 0.5}},',
        "",
        "needs at least one negative control",
        "    jd.Claim(",
    ),
    "another evidence": ('evidence="network"', 'evidence="net"', "evidence='net' is not allowed", "    jd.Claim("),
    "seeds": ("seeds=8", "seeds=0", "seeds=0 is not allowed", "    jd.Claim("),
    "no such module": ("import jax\n", "import jacks\n", "No module named 'jacks'", "import jacks"),
    "no such name": ("trial=trial", "trial=tried", "name 'tried' is not defined", "        evidence="),
    "a control's field": ('{"unbalance": 0.5}', '{"unbalanced": 0.5}', "Mode has no field 'unbalanced'", "        controls="),
}
RAISED = {
    "a rival's variable": (
        'off(predicted_u="start")',
        'off(predicted_u="strat")',
        "no variable 'strat'; did you mean 'start'?",
        "        rivals=",
    ),
    "a rival's prediction": (
        'off(predicted_u="start")',
        'off(predicted_v="start")',
        "no variable 'predicted_v'",
        "        rivals=",
    ),
    "a rival's check": ('off(predicted_u="start")', 'off({"eror": 0.0})', "speaks of 'eror'", "        rivals="),
    "a variable by name": (
        'jd.relative_error(ds, "u")',
        'jd.relative_error(ds, "v")',
        "(there are lam, lr, measured_u, predicted_u, seed,",
        "    error =",
    ),
    "a variable": ('jd.relative_error(ds, "u")', "ds.measured_v", "did you mean 'measured_u'?", "    error ="),
    "if": (
        "    u0 = 0.05",
        "    if s.lr > 1:\n        s = 0\n    u0 = 0.05",
        "(if, while, and, or): use jnp.where, or make the field static",
        "    if s.lr",
    ),
    "int": ("jnp.round(s.time / s.lr).astype(int)", "int(s.time / s.lr)", "as in jnp.round(x).astype(int)", "    w = jax"),
    "range": ("    theory = ", "    range(s.lam)\n    theory = ", "use jax.lax.fori_loop or jnp.take", "    range("),
    "numpy": ("    theory = ", "    np.sqrt(s.lam)\n    theory = ", "use the function of that name in jax.numpy", "    np.sqrt"),
    "mask": ("    theory = ", "    w[w > 0]\n    theory = ", "that their number is not known: use jnp.where", "    w[w"),
    "result": ("return jd.observables(predicted=", "return w\n    (dict)(predicted=", "it returned an array", "def trial"),
}


def mistaken(folder, table, name):
    """A file with one mistake, and the line that has to be mended."""
    wrong, mistyped, words, begins = table[name]
    assert CLAIM.count(wrong) == 1 or name == "no such module", wrong
    text = CLAIM.replace(wrong, mistyped, 1).replace("import jax.numpy as jnp\n", "import jax.numpy as jnp\nimport numpy as np\n")
    file = folder / "mine.py"
    file.write_text(text, encoding="utf-8")
    lines = [i for i, line in enumerate(text.splitlines(), 1) if line.startswith(begins)]
    return file, words, f"mine.py:{lines[0]}"


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_in_a_claim_is_refused_with_the_line_that_has_it(tmp_path, name):
    file, words, place = mistaken(tmp_path, REFUSED, name)
    with pytest.raises(jd.errors.UsageError) as refused:
        jd.verify("mine.logistic", load=[file])
    assert words in str(refused.value) and re.search(rf"{re.escape(place)}( in \w+)?\)$", str(refused.value)), refused.value
    assert "UsageError" not in str(refused.value), "a word of ours that says nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", RAISED)
def test_a_mistake_in_a_trial_judge_or_rival_says_what_to_do_and_where(tmp_path, name):
    file, words, place = mistaken(tmp_path, RAISED, name)
    outcome = jd.verify("mine.logistic", load=[file])
    assert outcome.verdict == "error" and words in outcome.message and f"{place} in " in outcome.message, outcome.message
    assert "Tracer " not in outcome.message


def test_every_error_of_jax_that_a_trial_may_raise_has_a_cure():
    of_traced = {
        name for name in dir(jax.errors) if name.endswith("Error") and "Tracer" in name + str(getattr(jax.errors, name).__mro__)
    }
    assert of_traced <= CURES.keys() | {"JAXTypeError", "JAXIndexError"} and len(of_traced) >= 4
