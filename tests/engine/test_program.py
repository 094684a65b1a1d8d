"""How programs are compiled: with the options that this version of JAX has."""

import contextlib

import pytest

from jaxdyn.engine import program
from jaxdyn.engine.chunk import Chunk, Program
from jaxdyn.engine.reference import ref_to
from jaxdyn.engine.setting import split


@pytest.fixture(autouse=True)
def forget():
    program._known_options.cache_clear()
    yield
    program._known_options.cache_clear()


def test_the_level_of_optimization_is_known_everywhere():
    assert program._known_options("full") == {}
    assert program._known_options("quick") == {"xla_backend_optimization_level": 1}


def test_an_option_that_is_gone_is_left_out(monkeypatch):
    monkeypatch.setitem(program.COMPILERS, "light", {"xla_backend_optimization_level": 1, "xla_no_such_option": True})
    assert program._known_options("light") == {"xla_backend_optimization_level": 1}


@pytest.mark.parametrize("executor", ["map", "vmap"])
def test_each_chunk_limits_the_libraries_that_are_loaded_by_then(toys, monkeypatch, executor):
    limits = []

    class Controller:
        """Knows the libraries of the time when it is made."""

        def __init__(self):
            self.at = len(limits)

        @contextlib.contextmanager
        def limit(self, **limit):
            limits.append((self.at, limit))
            yield

    monkeypatch.setattr(program, "ThreadpoolController", Controller)
    static, cell = split(toys.Toy())
    chunk = Chunk(Program(ref_to(toys.decay), ref_to(toys.Toy), static, executor), (cell,), (4,))
    for _ in range(2):
        program.run_chunk(chunk)
    assert limits == [(i, {"limits": 1, "user_api": "blas"}) for i in range(2)]
