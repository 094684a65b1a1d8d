"""The values behind a function's names: in notebooks and people's own modules, the same in every process."""

import functools
import os
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.engine.live import fixed_values, unknown, values

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


@pytest.mark.slow
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


HEAD = """
import collections, dataclasses, enum, fractions, functools, types
import jax
import numpy as np
import optax
import xarray as xr

@dataclasses.dataclass
class Options:
    rate: float = 1.0

class Law:
    rate = 1.0
    def __init__(self, rate=1.0):
        self.rate = rate
    def __call__(self, x):
        return self.rate * x

def scaled(k):
    def law(x):
        return k * x
    return law
"""
KINDS = {  # what THING is, what becomes of it, and how a function uses it
    "dataclass": ("Options(1.0)", "THING = Options(3.0)", "THING.rate * x"),
    "changed dataclass": ("Options(1.0)", "THING.rate = 3.0", "THING.rate * x"),
    "namespace": ("types.SimpleNamespace(rate=1.0)", "THING = types.SimpleNamespace(rate=3.0)", "THING.rate * x"),
    "changed namespace": ("types.SimpleNamespace(rate=1.0)", "THING.rate = 3.0", "THING.rate * x"),
    "class": ("Law", "class Law:\n    rate = 3.0", "Law.rate * x"),
    "changed class": ("Law", "Law.rate = 3.0", "Law.rate * x"),
    "class of a base": ("type('Heir', (Law,), {})", "Law.rate = 3.0", "THING.rate * x"),
    "dict of lambdas": ("{'f': lambda x: x}", "THING = {'f': lambda x: 3 * x}", "THING['f'](x)"),
    "tuple of lambdas": ("(lambda x: x,)", "THING = (lambda x: 3 * x,)", "THING[0](x)"),
    "dict of closures": ("{'f': scaled(1.0), 'g': scaled(2.0)}", "THING['f'] = scaled(3.0)", "THING['f'](x)"),
    "callable": ("Law(1.0)", "THING = Law(3.0)", "THING(x)"),
    "method": ("Law(1.0).__call__", "THING = Law(3.0).__call__", "THING(x)"),
    "method of a dict": ("{'a': 1.0}.get", "THING = {'a': 3.0}.get", "THING('a') * x"),
    "static method": (
        "type('A', (), {'f': staticmethod(lambda x: x)})",
        "THING = type('A', (), {'f': staticmethod(lambda x: 3 * x)})",
        "THING.f(x)",
    ),
    "property": ("None", "class THING:\n    @property\n    def f(self): return 3", "THING"),
    "enumeration": ("enum.Enum('E', {'A': 1.0})", "THING = enum.Enum('E', {'A': 3.0})", "THING.A.value * x"),
    "member": ("enum.Enum('E', {'A': 1.0}).A", "THING = enum.Enum('E', {'A': 3.0}).A", "THING.value * x"),
    "range": ("range(1)", "THING = range(3)", "len(THING) * x"),
    "fraction": ("fractions.Fraction(1)", "THING = fractions.Fraction(3)", "float(THING) * x"),
    "view of a dict": ("types.MappingProxyType({'a': 1.0})", "THING = types.MappingProxyType({'a': 3.0})", "THING['a'] * x"),
    "named tuple": ("collections.namedtuple('P', 'a')(1.0)", "THING = THING._replace(a=3.0)", "THING.a * x"),
    "deque": ("collections.deque([1.0])", "THING[0] = 3.0", "THING[0] * x"),
    "labelled array": ("xr.DataArray([1.0])", "THING = xr.DataArray([3.0])", "THING.values[0] * x"),
    "masked array": ("np.ma.array([1.0], mask=[0])", "THING.mask = [1]", "THING.sum() * x"),
    "array of objects": ("np.array([Options(1.0)])", "THING[0].rate = 3.0", "THING[0].rate * x"),
    "random numbers": ("np.random.default_rng(1)", "THING = np.random.default_rng(3)", "THING.normal() * x"),
    "optimiser": ("optax.adam(1.0)", "THING = optax.adam(3.0)", "THING.init(x)"),
    "mapped function": ("jax.vmap(lambda x: x)", "THING = jax.vmap(lambda x: 3 * x)", "THING(x)"),
    "compiled function": ("jax.jit(scaled(1.0))", "THING = jax.jit(scaled(3.0))", "THING(x)"),
    "cached function": ("functools.cache(scaled(1.0))", "THING = functools.cache(scaled(3.0))", "THING(x)"),
    "function of functions": ("np.vectorize(lambda x: x)", "THING = np.vectorize(lambda x: 3 * x)", "THING(x)"),
    "attribute of a function": ("scaled(1.0)", "THING.rate = 3.0", "THING.rate * x"),
    "dispatch": ("functools.singledispatch(scaled(1.0))", "THING.register(int, lambda x: 3 * x)", "THING(x)"),
    "plain dict next to a local one": (
        "{'a': 1.0}",
        "THING['a'] = 3.0",
        "[b for b in [{}] if b.update(a=THING['a']) is None][0]['a'] * x",
    ),
}


def cells_with(monkeypatch, thing, use):
    """A module without a file in which ``function`` uses THING."""
    module = types.ModuleType("other_cells")
    monkeypatch.setitem(sys.modules, "other_cells", module)
    run(module, f"{HEAD}\nTHING = {thing}\ndef function(x):\n    return {use}\n")
    return module


def run(module, lines):
    exec(compile(lines, "<cells>", "exec"), module.__dict__)


@pytest.mark.parametrize(("thing", "change", "use"), KINDS.values(), ids=KINDS)
def test_every_kind_of_value_is_compared_by_content(monkeypatch, thing, change, use):
    module = cells_with(monkeypatch, thing, use)
    before = values(module.function)
    assert values(module.function) == before and unknown(module.function)[0] == []
    run(module, change)
    assert values(module.function) != before


@pytest.mark.parametrize(("thing", "why"), [("(x for x in [1])", "generator"), ("open('/dev/null')", "TextIOWrapper")])
def test_what_cannot_be_compared_is_named(monkeypatch, thing, why):
    module = cells_with(monkeypatch, thing, "THING")
    assert unknown(module.function)[0] == [f"other_cells:THING holds what cannot be compared (a {why})"]
    if "open" in thing:
        module.THING.close()


def test_names_that_are_looked_up_by_their_text_are_not_known(monkeypatch):
    module = cells_with(monkeypatch, "1.0", "globals()['THING'] * x")
    assert "uses globals" in unknown(module.function)[0][0]


def test_an_attribute_that_is_called_like_a_name_is_not_that_name(monkeypatch):
    module = cells_with(monkeypatch, "(x for x in [1])", "x.THING")
    assert unknown(module.function)[0] == []


MEMORIES = """
MEMORY, OTHER, STATE = {"a": {}}, [1.0], [0]
def by_item(s): MEMORY["x", s] = OTHER[0]
def by_method(s): MEMORY["a"].update(x=OTHER[0])
def by_slice(s): MEMORY["a"] = OTHER[:]; STATE[0:1] = [2]
def increased(s): MEMORY["a"] += OTHER[0]
def deleted(s): del MEMORY["a"], STATE[0]; return OTHER[0]
def in_an_inner_one(s):
    def inner(): MEMORY.setdefault("a", OTHER[0] if s else 3)
    return inner
"""


@pytest.mark.parametrize("name", ["by_item", "by_method", "by_slice", "increased", "deleted", "in_an_inner_one"])
def test_a_container_that_a_function_changes_is_its_memory_and_no_other_one(cells, name):
    run(cells, MEMORIES)
    function = getattr(cells, name)
    before = values(function)
    cells.MEMORY["b"] = 3
    assert values(function) == before
    cells.OTHER[0] = 3.0
    assert values(function) != before


MADE = """
def make():
    memory = {}
    def f(x, log=[]):
        memory[x] = 1
        log.append(x)
    return f
f = make()
"""


def test_the_memory_of_a_closure_is_no_value(cells):
    run(cells, MADE)
    before = values(cells.f)
    cells.f(2)
    assert values(cells.f) == before


def test_workers_compare_what_does_not_change(monkeypatch):
    """Rules, classes and constants, but no objects that may be memories."""
    for name, fixed in (("tuple of lambdas", True), ("class of a base", True), ("fraction", True), ("changed dataclass", False)):
        thing, change, use = KINDS[name]
        module = cells_with(monkeypatch, thing, use)
        before = fixed_values(module.function)
        run(module, change)
        assert (fixed_values(module.function) != before) is fixed, name


def test_nothing_that_libraries_offer_is_in_doubt():
    """Functions, classes, switches and what they make: without values of people's own, and all comparable."""
    import diffrax
    import equinox
    import flax.linen
    import optax
    import scipy.special

    import jaxdyn as jd

    libraries = (jnp, jax, jax.nn, jax.lax, jax.random, np, optax, diffrax, equinox, flax.linen, scipy.special, functools, jd)
    offered = {f"{one.__name__}.{n}": getattr(one, n) for one in libraries for n in dir(one) if not n.startswith("_")}
    made = {"solver": diffrax.Kvaerno5(), "layer": flax.linen.Dense(3), "switch": jax.enable_x64, "device": jax.devices()[0]}
    made |= {"tree": jax.tree.structure([1]), "schedule": optax.cosine_decay_schedule(0.1, 3), "net": equinox.nn.Identity()}

    def function():
        return holder

    holder = offered | made
    assert unknown(function)[0] == []
    assert {name for name in made if values(lambda thing=made[name]: thing) != values(lambda thing=made[name]: thing)} == set()


@pytest.mark.slow
def test_values_do_not_depend_on_the_order_of_sets():
    code = (
        "import sys\nfrom jaxdyn.engine.live import values\n"
        "def f(x, kinds=frozenset('abc')): return x in {'a', 'b', 'c'}\nprint(values(f))"
    )
    seeds = [{**os.environ, "PYTHONHASHSEED": seed} for seed in "12"]
    assert len({subprocess.run([sys.executable, "-c", code], env=e, capture_output=True, check=True).stdout for e in seeds}) == 1
