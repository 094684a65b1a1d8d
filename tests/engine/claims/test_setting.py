"""Settings as pytrees, and what they refuse."""

import dataclasses
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.setting import columns, join, split
from jaxdyn.errors import UsageError

FINITE = st.floats(1e-6, 1e6)


@jd.setting
class Strict:
    """Its ``__init__`` refuses everything but positive Python numbers."""

    a: jd.Swept = 1.0
    mode: jd.Code = jd.code("one", "two", "three")
    n: int = 2

    def __post_init__(self):
        assert type(self.a) in (int, float) and self.a > 0, "ran __init__ on something that is no number"


def test_swept_and_static_fields_are_told_apart(toys):
    assert toys.Toy.swept_fields == ("rate", "lr", "optimizer")
    assert toys.Toy.static_fields == ("size", "noisy", "kind", "weights", "depth", "dtype")


def test_frozen_and_keyword_only():
    with pytest.raises(AttributeError):
        Strict().a = 2.0
    with pytest.raises(TypeError):
        Strict(1.0)


def test_is_a_pytree_of_its_swept_fields():
    leaves, tree = jax.tree.flatten(Strict(a=3.0, mode="two"))
    assert leaves == [3.0, 1]
    assert jax.tree.unflatten(tree, leaves) == Strict(a=3.0, mode="two")
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(Strict())[0]]
    assert paths == [".a", ".mode[<flat index 0>]"]
    assert hash(tree) == hash(jax.tree.structure(Strict(a=9.0)))
    assert tree != jax.tree.structure(Strict(n=3))


@pytest.mark.parametrize("placeholder", [None, object(), -1.0, np.ones(3)])
def test_placeholders_pass_without_init(placeholder):
    mapped = jax.tree.map(lambda _: placeholder, Strict())
    assert mapped.a is placeholder and mapped.n == 2


def test_passes_vmap_jit_grad_and_eval_shape_without_init():
    stacked = join(Strict, [("n", 2)], {"a": jnp.arange(4.0), "mode": jnp.array([0, 1, 2, 1])})  # 0.0 would be refused

    def value(s):
        return jax.lax.switch(s.mode.index, [lambda a: a, lambda a: a**2, lambda a: -a], s.a) * s.n

    out = jax.jit(jax.vmap(value))(stacked)
    np.testing.assert_array_equal(out, [0.0, 2.0, -4.0, 18.0])
    assert jax.eval_shape(jax.vmap(value), stacked).shape == (4,)
    grads = jax.grad(lambda s: value(s), allow_int=True)(join(Strict, [("n", 2)], {"a": 3.0, "mode": jnp.int32(1)}))
    assert grads.a == 12.0


CALLS = (jd.verify, jd.verify_many, jd.map, jd.grid, jd.Grid.replace)
CALLS += (xr.Dataset.sel,)
TAKEN = {"seed", "form", "cell", "status", *(name for call in CALLS for name in inspect.signature(call).parameters)}
TAKEN -= {"fields", "indexers", "indexers_kwargs"}
ATTRIBUTES = {name for name in vars(Strict) if name[0] != "_"} - {"a", "mode", "n"}


@pytest.mark.parametrize("name", sorted(TAKEN | ATTRIBUTES | {"__x__", "__hash__"}))
@pytest.mark.parametrize("kind", [jd.Swept, int])
def test_names_that_the_engine_uses_are_refused(name, kind):
    with pytest.raises(jd.UsageError, match=f"Bad.{name} is not allowed: the name '{name}' is taken .*; rename the field"):
        jd.setting(type("Bad", (), {"__annotations__": {name: kind}, name: kind(1) if kind is int else 1.0}))


def test_a_parents_field_is_checked_as_well():
    parent = dataclasses.dataclass(frozen=True)(type("Parent", (), {"__annotations__": {"status": jd.Swept}, "status": 1.0}))
    with pytest.raises(jd.UsageError, match="Bad.status is not allowed"):
        jd.setting(type("Bad", (parent,), {"__annotations__": {"x": jd.Swept}, "x": 1.0}))


def test_other_names_are_free():
    names = ("fields", "name", "value", "base", "axes", "shape", "names", "index", "trial", "grid", "other", "_own")
    free = jd.setting(type("Free", (), {"__annotations__": dict.fromkeys(names, jd.Swept)} | dict.fromkeys(names, 1.0)))
    grid = jd.grid(free, **dict.fromkeys(names, [1.0, 2.0]))
    assert grid.replace(**dict.fromkeys(names, 3.0)).cells() == [free(**dict.fromkeys(names, 3.0))]


def test_every_field_needs_a_default():
    with pytest.raises(jd.UsageError, match="Bad.x needs a default"):
        jd.setting(type("Bad", (), {"__annotations__": {"x": jd.Swept}}))


@pytest.mark.parametrize("default", [1, "one", jd.Code(0, ("one", "two"))])
def test_a_switch_is_declared_by_its_names(default):
    with pytest.raises(jd.UsageError, match="Bare.switch: a switch is declared as switch: jd.Code = jd.code"):
        jd.setting(type("Bare", (), {"__annotations__": {"switch": jd.Code}, "switch": default}))


def test_a_switch_is_compared_with_its_own_names_only():
    s = Strict(mode="two")
    assert s.mode == "two" and s.mode != "one" and s.mode in ("one", "two") and str(s.mode) == "two"
    for stranger in (1, 1.0, None, np.int32(1), ("two",)):
        with pytest.raises(TypeError, match=r"compared with one of its names \(one, two, three\)"):
            s.mode == stranger  # noqa: B015
    for compare in (lambda: s.mode == "four", lambda: s.mode != "four"):
        with pytest.raises(jd.UsageError, match="'four' is not allowed: it is one of one, two, three"):
            compare()


def test_a_traced_switch_is_compared_alike():
    def chosen(s):
        return jnp.stack([s.mode == "one", s.mode == "two", s.mode != "two"])

    stacked = join(Strict, [("n", 2)], {"a": jnp.ones(2), "mode": jnp.array([0, 1])})
    np.testing.assert_array_equal(jax.jit(jax.vmap(chosen))(stacked), [[True, False, True], [False, True, False]])
    for stranger in (0, jnp.int32(0)):
        with pytest.raises(TypeError, match="compared with one of its names"):
            jax.jit(lambda s, stranger=stranger: s.mode == stranger)(Strict())
    with pytest.raises(jd.UsageError, match="'four' is not allowed"):
        jax.jit(lambda s: s.mode == "four")(Strict())


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(FINITE, st.sampled_from(["one", "two", "three"])), min_size=1, max_size=4))
def test_what_is_taken_apart_is_put_together_again(cells):
    """split, columns and join are inverse to one another, in the setting's precision."""
    parts = [split(Strict(a=a, mode=mode)) for a, mode in cells]
    assert {static for static, _ in parts} == {(("n", 2),)}
    arrays = columns(Strict, parts[0][0], [swept for _, swept in parts])
    assert arrays["a"].dtype == np.float64 and arrays["mode"].dtype == np.int32
    again = [join(Strict, parts[0][0], {name: column[i].item() for name, column in arrays.items()}) for i in range(len(cells))]
    assert again == [Strict(a=a, mode=mode) for a, mode in cells]


@jd.setting
class Parent:
    """Two numbers and a relation between them."""

    width: int = 4
    depth: int = 2

    def __post_init__(self):
        jd.require(self, self.depth <= self.width, "depth is at most width", "depth", "width")


@jd.setting
class Child(Parent):
    """One field more, no check of its own."""

    kind: jd.Code = jd.code("a", "b")


def test_a_subclass_without_a_check_of_its_own_keeps_its_parents():
    assert bool(Child(kind="b").kind == "b")
    with pytest.raises(jd.UsageError, match="depth is at most width"):
        Child(depth=5)


@jd.setting
class Single:
    """Numbers in single precision, and a fixed field of any kind."""

    lr: jd.Swept = 0.1
    dtype: str = "float32"
    kind: Any = None


@pytest.mark.parametrize(
    "value", [jax.nn.relu, np.tanh, object(), np.zeros(2), [1], {}, ("a", print)], ids=lambda value: type(value).__name__
)
def test_objects_are_no_values_of_a_fixed_field(value):
    with pytest.raises(UsageError, match=r"Single.kind=.* is not allowed: a static field holds a number, a word"):
        Single(kind=value)


def test_a_function_as_a_default_is_refused_when_the_grid_is_made():
    @jd.setting
    class Net:
        act: Any = jax.nn.relu

    with pytest.raises(UsageError, match="Net.act=.*name a function by a word, and choose it in the trial"):
        jd.grid(Net)
