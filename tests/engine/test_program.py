"""How programs are compiled: with the options that this version of JAX has."""

import pytest

from jaxdyn.engine import program


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
