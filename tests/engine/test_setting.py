"""Settings as pytrees, coercion of values, grids."""

import dataclasses
import decimal
import fractions
import inspect
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.fields import coerce
from jaxdyn.engine.grid import field_table
from jaxdyn.engine.setting import columns, join, split
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


GOOD = [
    ("rate", "0.5", 0.5),
    ("rate", 2, 2.0),
    ("rate", np.float32(0.5), 0.5),
    ("rate", np.int64(3), 3.0),
    ("rate", "1e-3", 1e-3),
    ("optimizer", "sign", "sign"),
    ("size", "4", 4),
    ("size", 4.0, 4),
    ("size", np.int32(4), 4),
    ("noisy", "true", True),
    ("noisy", False, False),
    ("noisy", np.bool_(True), True),
    ("kind", "fancy", "fancy"),
    ("weights", "3:4:5", (3, 4, 5)),
    ("weights", (7,), (7,)),
    ("depth", "none", None),
    ("depth", None, None),
    ("depth", "3", 3),
    ("dtype", "float32", "float32"),
    ("rate", jnp.float32(0.5), 0.5),
    ("rate", jnp.bfloat16(0.5), 0.5),
    ("rate", decimal.Decimal("0.5"), 0.5),
    ("rate", np.asarray(0.5), 0.5),
    ("size", jnp.int32(4), 4),
    ("size", jnp.float32(4), 4),
    ("size", decimal.Decimal(4), 4),
    ("size", fractions.Fraction(4, 2), 2),
    ("size", np.asarray(4), 4),
    ("noisy", jnp.bool_(True), True),
    ("weights", np.arange(3), (0, 1, 2)),
    ("weights", jnp.arange(3), (0, 1, 2)),
    ("weights", [jnp.int32(3), 4.0], (3, 4)),
]


@pytest.mark.parametrize(("name", "given_", "held"), GOOD)
def test_values_are_coerced(toys, name, given_, held):
    value = coerce(toys.Toy, name, given_)
    assert value == held and type(value) is type(held)


BAD = [
    ("rate", "fast", "a finite number"),
    ("rate", "", "a finite number"),
    ("rate", None, "a finite number"),
    ("rate", True, "a finite number"),
    ("rate", float("nan"), "a finite number"),
    ("rate", "nan", "a finite number"),
    ("rate", float("inf"), "a finite number"),
    ("rate", "-inf", "a finite number"),
    ("rate", 10**400, "a finite number"),
    ("rate", "1e400", "a finite number"),
    ("rate", (0.1, 0.2), "a finite number"),
    ("rate", {"a": 1}, "a finite number"),
    ("rate", 1j, "a finite number"),
    ("optimizer", "adam", "one of gd, sign"),
    ("optimizer", 0, "one of gd, sign"),
    ("optimizer", None, "one of gd, sign"),
    ("optimizer", ["gd"], "one of gd, sign"),
    ("size", 2.5, "a whole number"),
    ("size", "2.5", "a whole number"),
    ("size", True, "a whole number"),
    ("size", float("nan"), "a whole number"),
    ("size", float("inf"), "a whole number"),
    ("size", None, "a whole number"),
    ("noisy", "yes", "true or false"),
    ("noisy", 1, "true or false"),
    ("noisy", [], "true or false"),
    ("kind", "odd", "one of plain, fancy"),
    ("weights", "1:two", "weights"),
    ("weights", 5, "weights"),
    ("weights", (1.5, 2), "weights"),
    ("weights", (True, 2), "weights"),
    ("depth", "deep", "depth"),
    ("dtype", 64, "a word"),
    ("rate", b"1.5", "a finite number"),
    ("rate", jnp.array(True), "a finite number"),
    ("rate", jnp.float32("nan"), "a finite number"),
    ("rate", decimal.Decimal("nan"), "a finite number"),
    ("rate", np.ones(1), "a finite number"),
    ("rate", np.timedelta64(3, "s"), "a finite number"),
    ("size", jnp.float32(2.5), "a whole number"),
    ("size", jnp.bool_(True), "a whole number"),
    ("size", np.float32(2.5), "a whole number"),
    ("size", decimal.Decimal("1.5"), "a whole number"),
    ("size", decimal.Decimal("inf"), "a whole number"),
    ("size", fractions.Fraction(3, 2), "a whole number"),
    ("size", b"4", "a whole number"),
    ("size", np.ones(1, int), "a whole number"),
    ("size", np.timedelta64(3, "ns"), "a whole number"),
    ("size", np.datetime64(3, "ns"), "a whole number"),
    ("depth", fractions.Fraction(3, 2), "depth"),
    ("depth", jnp.float32(2.5), "depth"),
    ("weights", (jnp.float32(1.5), 2), "weights"),
    ("weights", b"ab", "weights"),
    ("weights", {1: 2}, "weights"),
    ("weights", {2, 1}, "weights"),
    ("weights", np.ones((2, 2), int), "weights"),
]
SEVERAL = [pd.Series([1, 2]), pd.DataFrame({"a": [1]}), xr.DataArray([1, 2], dims="x"), xr.Dataset({"x": 1}), jnp.ones((3, 3))]
LONG = [*SEVERAL, np.ones((50, 50)), 10**5000, "one\ntwo", ["a" * 500]]


@pytest.mark.parametrize("name", ["rate", "optimizer", "size", "noisy", "kind", "weights", "depth", "dtype"])
@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_refusals_are_one_line(toys, name, value):
    if name in ("size", "depth") and isinstance(value, int) or name == "dtype" and isinstance(value, str):
        return
    for call in (coerce, lambda cls, name, value: jd.grid(cls, **{name: [value]})):
        with pytest.raises(jd.UsageError) as error:
            call(toys.Toy, name, value)
        message = str(error.value)
        assert message.startswith(f"{name}=") and "\n" not in message and len(message) < 200


def test_a_switch_between_numbers_takes_no_truth_values():
    @jd.setting
    class Levels:
        level: Literal[1, 2] = 1
        on: Literal[True, "half"] = True

    assert coerce(Levels, "level", 2.0) == 2 and coerce(Levels, "on", np.bool_(True)) is True
    for name, value in (("level", True), ("on", 1)):
        with pytest.raises(jd.UsageError, match=f"{name}={value} is not allowed: {name} is one of"):
            coerce(Levels, name, value)


@pytest.mark.parametrize(("name", "value", "allowed"), BAD)
def test_bad_values_are_named_in_one_sentence(toys, name, value, allowed):
    with pytest.raises(jd.UsageError) as error:
        coerce(toys.Toy, name, value)
    message = str(error.value)
    assert name in message and allowed in message and "\n" not in message
    assert repr(value)[:20] in message or getattr(value, "ndim", 0)


def test_tuples_of_numbers_must_be_finite():
    @jd.setting
    class Masses:
        p: tuple[float, ...] = (0.5, 0.5)

    assert coerce(Masses, "p", "0.25:0.75") == (0.25, 0.75)
    with pytest.raises(jd.UsageError, match="p="):
        coerce(Masses, "p", (0.5, float("nan")))


def test_unknown_fields_are_listed(toys):
    with pytest.raises(jd.UsageError, match="Toy has no field 'rte'; it has: rate, lr, optimizer, size"):
        jd.grid(toys.Toy, rte=1.0)


@pytest.mark.parametrize("bad", [{"rate": -1.0}, {"rate": 0}, {"size": 0}, {"rate": [-1.0, 1.0]}])
def test_post_init_refuses_with_its_own_sentence(toys, bad):
    with pytest.raises(jd.UsageError, match="is not allowed: (rate is positive|size is at least 1)"):
        jd.grid(toys.Toy, **bad)


def test_post_init_sees_every_cell(toys):
    with pytest.raises(jd.UsageError, match="rate=-1.0 is not allowed: rate is positive"):
        jd.sweep(toys.decay, jd.grid(toys.Toy, rate=[1.0, -1.0]))


def test_empty_axes_and_duplicates_are_refused(toys):
    with pytest.raises(jd.UsageError, match="rate: an axis of a grid needs at least one value"):
        jd.grid(toys.Toy, rate=[])
    with pytest.raises(jd.UsageError, match=r"rate: the values of an axis must differ, got 1.0, 2.0, 1.0"):
        jd.grid(toys.Toy, rate=[1, 2.0, "1.0"])


def test_an_array_without_axes_is_one_value(toys):
    assert jd.grid(toys.Toy, rate=np.asarray(2.0)).base.rate == 2.0
    assert jd.grid(toys.Toy, rate=jnp.asarray(2.0)).axes == {}


def test_arrays_are_axes(toys):
    for values in (np.float32([0.5, 1.0]), jnp.array([0.5, 1.0])):
        assert jd.grid(toys.Toy, rate=values).axes == {"rate": (0.5, 1.0)}
    with pytest.raises(jd.UsageError, match=r"size=.*2.5.* is not allowed: size is a whole number"):
        jd.grid(toys.Toy, size=jnp.array([2.0, 2.5]))


def test_numbers_beyond_the_settings_precision_are_refused(toys):
    with pytest.raises(jd.UsageError, match="lr"):
        jd.sweep(toys.net, jd.grid(toys.Net, lr=[0.1, 1e300]))


def test_replace_keeps_axes(toys):
    grid = jd.grid(toys.Toy, rate=[0.5, 1.0], lr=[0.1, 0.2])
    one = grid.replace(lr=0.3)
    assert one.axes == {"rate": (0.5, 1.0), "lr": (0.3,)} and one.shape == (2, 1)
    more = grid.replace(size=[2, 3], noisy=True)
    assert more.axes["size"] == (2, 3) and all(c.noisy for c in more.cells())
    assert grid.axes == {"rate": (0.5, 1.0), "lr": (0.1, 0.2)}, "the old grid is left alone"


def test_field_table_tells_what_may_be_set(toys):
    table = {row["name"]: row for row in field_table(jd.grid(toys.Toy, rate=[1.0, 2.0]))}
    assert table["rate"] == {"name": "rate", "kind": "swept", "type": "a number", "range": {}, "value": [1.0, 2.0]}
    assert table["optimizer"]["type"] == "one of gd, sign"
    assert table["size"] == {"name": "size", "kind": "static", "type": "a whole number", "range": {}, "value": 3}
    assert table["kind"]["type"] == "one of plain, fancy"


@settings(deadline=None, max_examples=40)
@given(st.lists(FINITE, min_size=1, max_size=4, unique=True), st.lists(st.integers(1, 50), min_size=1, max_size=3, unique=True))
def test_a_grid_is_a_product_with_the_last_axis_fastest(rates, widths):
    @jd.setting
    class Small:
        rate: jd.Swept = 1.0
        width: int = 1

    grid = jd.grid(Small, rate=rates, width=widths)
    assert grid.shape == (len(rates), len(widths))
    assert [(c.rate, c.width) for c in grid.cells()] == [(r, w) for r in rates for w in widths]
    assert grid.replace(rate=list(rates)) == grid
    assert jd.grid(Small, rate=np.array(rates), width=widths) == grid


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.one_of(st.text(max_size=8), st.none(), st.floats(), st.integers(), st.booleans(), st.lists(st.integers(), max_size=2)))
def test_any_value_is_coerced_or_refused_by_a_usage_error(value):
    for name in Strict.hints:
        try:
            held = coerce(Strict, name, value)
        except jd.UsageError as error:
            assert name in str(error)
        else:
            assert type(held) in (float, int, str) and coerce(Strict, name, held) == held


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


@pytest.mark.parametrize("value", [1e-50, 1e39, -1e-39])
def test_a_number_that_its_precision_cannot_hold_is_refused(value):
    with pytest.raises(UsageError, match=r"float32 holds numbers of size from 1.2e-38 to 3.4e\+38, and 0"):
        jd.grid(Single, lr=[0.1, value]).cells()
    assert len(jd.grid(Single, lr=[0.1, value], dtype="float64").cells()) == 2


def test_two_labels_of_one_number_are_refused():
    with pytest.raises(UsageError, match="another value of this axis is the same number in float32"):
        jd.grid(Single, lr=[0.1, 0.1000000001]).cells()


def test_minus_zero_is_zero():
    (cell,) = jd.grid(Single, lr=[-0.0]).cells()
    assert math.copysign(1, cell.lr) == 1
    with pytest.raises(UsageError, match="the values of an axis must differ"):
        jd.grid(Single, lr=[0.0, -0.0])


@pytest.mark.parametrize("dtype", ["float33", "int32", "complex64", "", ","])
def test_a_precision_that_is_none_is_refused(dtype):
    with pytest.raises(UsageError, match=f"dtype='{dtype}' is not allowed: it is float64, float32, bfloat16 or float16"):
        jd.grid(Single, dtype=dtype).cells()


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
