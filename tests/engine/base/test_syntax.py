"""Which edits of a module's source count, and what it imports from the package."""

import ctypes
import importlib
import importlib.metadata
import itertools
import sys
import types

import numpy as np
import pytest

from jaxdyn.engine.base.syntax import Unfollowed, code_hash, imports_of, reached

SOURCE = '''"""A module."""
from __future__ import annotations
import numpy as np

def law(x: float, kind={"a", "b", "c"}) -> float:
    """A law."""
    # a comment
    return 2 * np.sin(x)

class Law:
    """A class."""
    rate = 1
'''


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("A module.", "Another module.", True),
        ('    """A law."""\n', "", True),
        ("# a comment", "# another", True),
        ("def law(x: float, kind", "\n\ndef law(\n    x: float,\n    kind", True),
        ("class Law:", "\n\n\nclass Law:", True),
        ("2 * np.sin(x)", "(2 *\n            np.sin(x))", True),
        ("2 * np", "3 * np", False),
        ("np.sin", "np.cos", False),
        ('"b"', '"d"', False),
        ("rate = 1", "rate = 1.0", False),
        ("rate = 1", "rate = True", False),
        ("import numpy", "import scipy", False),
        ("def law(x: float, kind", "def law(x: float, *, kind", False),
    ],
)
def test_what_counts(before, after, same):
    assert before in SOURCE
    assert (code_hash(SOURCE.encode()) == code_hash(SOURCE.replace(before, after).encode())) is same


IMPORTS = """
import jaxdyn as jd
import numpy as np
import jaxdyn.flow
from jaxdyn import train, nonsense
from jaxdyn.nn import attention
from jaxdyn.nn.norms import rms
from . import model
from .training import run

def late():
    from jaxdyn.optim import muon
    return jd.grid, jd.stats.mean, np.grid
"""


def test_what_is_imported():
    found = set(imports_of(IMPORTS.encode(), "jaxdyn.theories.cal"))
    assert found == {
        *("jaxdyn", "jaxdyn.flow", "jaxdyn.train", "jaxdyn.engine.claims.grid", "jaxdyn.stats"),
        *("jaxdyn.nn", "jaxdyn.nn.attention", "jaxdyn.nn.norms", "jaxdyn.nn.norms.rms"),
        *("jaxdyn.optim", "jaxdyn.optim.muon", "jaxdyn.theories.cal", "jaxdyn.theories.cal.model"),
        *("jaxdyn.theories.cal.training", "jaxdyn.theories.cal.training.run"),
    }


# what a function reaches

HELPERS = '''
import collections, enum, functools, threading
import jax
import numpy as np

SCALE = 3.0
TABLE = {"a": [1.0, np.arange(3.0)]}
LOCK = threading.Lock()

def clean(x):
    """Documentation."""
    return x * SCALE

def read(scale, s, *, more=5.0):
    return clean(scale) + more

class Base:
    def power(self):
        return 7.0

class Loader(Base):
    shift = 11.0

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, s):
        return self.scale

    def method(self, s):
        return self.power() + self.shift

    @property
    def unused(self):
        return 13.0

class Kind(enum.Enum):
    ONE = 17.0

Pair = collections.namedtuple("Pair", "a b", defaults=(19.0,))

def closed(value):
    def inner(s):
        return value
    return inner

def dispatched(x):
    return 23.0
dispatched = functools.singledispatch(dispatched)

@dispatched.register
def _(x: int):
    return 29.0

def wrap(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args) + 31.0
    return inner

def by_name(s):
    return s.place()

class Setting:
    def place(self):
        return 37.0

    def elsewhere(self):
        return 41.0
'''

REACHED = {  # a callable, and edits of the helpers that it reaches, or does not
    "global": ("lambda s: clean(s)", ["SCALE = 3.0", "x * SCALE"], ["Documentation.", "7.0"]),
    "imported module": ("lambda s: helpers.clean(s)", ["SCALE = 3.0", "x * SCALE"], ["23.0"]),
    "module in a function": ("import_within", ["SCALE = 3.0", "x * SCALE"], ["23.0"]),
    "module under another name": ("lambda s: (lambda m: m.clean(s))(helpers)", ["SCALE = 3.0"], ["23.0"]),
    "name at run time": ("lambda s: getattr(helpers, 'cle' + 'an')(s)", ["SCALE = 3.0", "x * SCALE", "23.0"], []),
    "cache": ("functools.lru_cache(clean)", ["SCALE = 3.0", "x * SCALE"], ["7.0"]),
    "jit": ("jax.jit(clean)", ["SCALE = 3.0", "x * SCALE"], ["7.0"]),
    "vmap": ("jax.vmap(clean)", ["SCALE = 3.0", "x * SCALE"], ["7.0"]),
    "partial": ("functools.partial(read, SCALE)", ["SCALE = 3.0", "x * SCALE", "more=5.0"], ["7.0"]),
    "partial's own": ("functools.partial(closed, TABLE['a'][0])", ["[1.0"], ["x * SCALE"]),
    "values": ("lambda s: TABLE", ["[1.0", "arange(3.0)"], ["x * SCALE"]),
    "object": ("Loader(SCALE)", ["SCALE = 3.0", "7.0", "11.0", "13.0"], ["x * SCALE"]),
    "method": ("Loader(1.0).method", ["7.0", "11.0"], ["x * SCALE"]),
    "enum": ("lambda s: Kind.ONE", ["17.0"], ["x * SCALE"]),
    "named tuple": ("lambda s: Pair(1)", ["19.0"], ["x * SCALE"]),
    "closure": ("closed(SCALE)", ["SCALE = 3.0"], ["x * SCALE"]),
    "dispatch": ("lambda s: dispatched(s)", ["23.0", "29.0"], ["x * SCALE"]),
    "decorated": ("wrap(clean)", ["31.0", "x * SCALE", "SCALE = 3.0"], ["7.0"]),
    "method of the setting": ("by_name", ["37.0"], ["41.0", "x * SCALE"]),
    "lock": ("lambda s: (LOCK, clean(s))", ["SCALE = 3.0"], ["7.0"]),
}
numbers = itertools.count()


@pytest.fixture
def content(tmp_path, monkeypatch):
    """The facts of a callable that uses helpers with this text, each time in modules that are imported anew."""

    def facts(text, callable_):
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
        for name in ("reach_helpers", "reach_user"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        (folder / "reach_helpers.py").write_text(text, encoding="utf-8")
        within = "def import_within(s):\n    from reach_helpers import clean\n    return clean(s)\n"
        own = f"from reach_helpers import *\nimport reach_helpers as helpers\n{within}load = {callable_}\n"
        (folder / "reach_user.py").write_text(own, encoding="utf-8")
        module = importlib.import_module("reach_user")
        return reached(module.load, module.Setting)

    return facts


def edited(part):
    """A part with another number or, where it has none, another operation."""
    old, new = next(pair for pair in ((".0", ".5"), ("*", "-"), ("Doc", "Another doc")) if pair[0] in part)
    return part.replace(old, new)


@pytest.mark.parametrize("kind", REACHED)
def test_all_that_a_function_reaches_counts_and_nothing_else(content, kind):
    callable_, counts, does_not = REACHED[kind]
    before = content(HELPERS, callable_)
    assert content(HELPERS, callable_) == before, "the same in every process"
    for part in counts:
        assert content(HELPERS.replace(part, edited(part)), callable_) != before, part
    for part in does_not:
        assert part in HELPERS and content(HELPERS.replace(part, edited(part)), callable_) == before, part


def test_a_global_that_is_set_counts():
    space = {"__name__": "__main__", "A": 1}
    exec("def load(s):\n    return A", space)
    before = reached(space["load"])
    space["A"] = 2
    assert reached(space["load"]) != before


UNFOLLOWED = {
    "eval": lambda s: eval("1"),
    "import": lambda s: __import__("json"),
    "import_module": lambda s: importlib.import_module("json"),
    "ctypes": ctypes.CDLL(None).labs,
    "library of ctypes": types.SimpleNamespace(lib=ctypes.CDLL(None)),
    "frompyfunc": np.frompyfunc(abs, 1, 1),
    "generator": [(i for i in range(3))],
}


@pytest.mark.parametrize("kind", UNFOLLOWED)
def test_what_cannot_be_followed_is_named(kind):
    held = UNFOLLOWED[kind]
    for one in (held, lambda s: held):
        with pytest.raises(Unfollowed, match="^(what|the compiled code|a function|an object) "):
            reached(one)


KNOWN = [np.load, np.sin, len, str.join, dict.get, np.random.default_rng, importlib.metadata.version, sys.getsizeof]


@pytest.mark.parametrize("known", KNOWN)
def test_functions_of_libraries_are_known_by_name_and_version(known):
    assert any(place.startswith("version ") for place in reached(known)) and reached(known) != reached(print)
