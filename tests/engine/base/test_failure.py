"""Errors as text: what is said of them, and that they travel."""

import json
import pickle
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxdyn.engine.base.failure import Failure, installed, shown_path, source_file


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
