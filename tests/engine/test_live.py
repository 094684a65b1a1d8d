"""The values behind a function's names: in notebooks and people's own modules, the same in every process."""

import functools
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.engine.live import fixed_values, values

SOURCE = """
import functools
import jax
import jax.numpy as jnp
FACTOR = 2.0
TABLE = jnp.arange(3.0)
OPTIONS = {"a": [1, 2]}
MEMORY = []

def helper(x, scale=1.0):
    return x * FACTOR * scale

def trial(s):
    MEMORY.append(s)
    return jax.jit(helper)(s) + TABLE.sum()

def chosen(s):
    return OPTIONS["a"][0] * half(s)

half = functools.partial(helper, scale=0.5)

class Law:
    def at(self, t):
        return FACTOR * t

def through_a_class(s):
    return Law().at(s)

def counting(s):
    global COUNT
    COUNT += 1
    return s
COUNT = 0
"""


@pytest.fixture
def cells(monkeypatch):
    """A module without a file."""
    module = types.ModuleType("some_cells")
    monkeypatch.setitem(sys.modules, "some_cells", module)
    exec(compile(SOURCE, "<cells>", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(
    ("function", "change", "seen"),
    [
        ("trial", "FACTOR = 3.0", True),
        ("trial", "TABLE = jnp.arange(4.0)", True),
        ("trial", "OPTIONS = 1", False),
        ("trial", "MEMORY.append(1)", False),
        ("trial", "def helper(x, scale=1.0):\n    return x + FACTOR * scale", True),
        ("trial", "def helper(x, scale=2.0):\n    return x * FACTOR * scale", True),
        ("chosen", "OPTIONS = {'a': [1, 3]}", True),
        ("chosen", "OPTIONS['a'][0] = 7", True),
        ("chosen", "half = functools.partial(helper, scale=0.25)", True),
        ("through_a_class", "FACTOR = 3.0", True),
        ("counting", "COUNT = 5", False),
    ],
)
def test_a_change_is_seen_where_the_function_uses_it(cells, function, change, seen):
    before = values(getattr(cells, function))
    exec(compile(change, "<cells>", "exec"), cells.__dict__)
    assert (values(getattr(cells, function)) != before) is seen


def test_lists_and_dicts_are_no_fixed_values(cells):
    before = fixed_values(cells.chosen)
    cells.OPTIONS["a"][0] = 7
    assert fixed_values(cells.chosen) == before
    cells.FACTOR = 3.0
    assert fixed_values(cells.chosen) != before


def test_what_is_installed_or_the_packages_own_has_no_values():
    assert (
        values(jnp.tanh)
        == values(np.mean)
        == values(jax.nn.relu)
        == values(values)
        == values(functools.partial(np.sum, axis=0))
        == ""
    )


PLAIN = st.one_of(st.booleans(), st.integers(), st.floats(), st.text(), st.none(), st.binary())
BOXES = lambda inner: st.one_of(st.tuples(inner, inner), st.lists(inner), st.dictionaries(st.text(), inner))  # noqa: E731
NESTED = st.recursive(PLAIN, BOXES, max_leaves=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(NESTED, NESTED)
def test_equal_values_alone_have_equal_hashes(one, other):
    """Equal to the type and the sign of zero: 1 is neither True nor 1.0, 0.0 is not -0.0."""

    def of(value):
        def function():
            return value

        function.__module__ = "some_cells"
        return values(function)

    assert (of(one) == of(other)) == (repr(one) == repr(other))
