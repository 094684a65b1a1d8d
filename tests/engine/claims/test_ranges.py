"""Ranges of a setting's numbers: at construction, in grids, in text; what passes, and what is no range."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.fields import coerce
from jaxdyn.engine.claims.grid import field_table


@jd.setting
class Ranged:
    """A field of every numeric type with a range, and one more requirement."""

    lr: jd.Swept = jd.field(0.01, above=0)
    share: jd.Swept = jd.field(0.5, at_least=0, at_most=1)
    power: float = jd.field(-0.5, above=-1, below=0)
    steps: int = jd.field(10, at_least=8)
    moduli: tuple[int, ...] = jd.field((5, 7), above=4)
    corners: tuple[tuple[float, float], ...] = jd.field(((0.0, 1.0),), at_least=0)
    depth: int | None = jd.field(None, at_least=1)
    rule: jd.Code = jd.code("gd", "adam")

    def __post_init__(self):
        jd.require(self, self.share != 0.25, "share is not 1/4", "share")


OUTSIDE = [
    ("lr", 0, "lr=0 is not allowed: lr is above 0"),
    ("lr", -1, "lr=-1 is not allowed: lr is above 0"),
    ("lr", -1e-300, "lr=-1e-300 is not allowed: lr is above 0"),
    ("lr", np.float32(-0.5), "lr=-0.5 is not allowed: lr is above 0"),
    ("lr", np.int64(0), "lr=0 is not allowed: lr is above 0"),
    ("share", 1.5, "share=1.5 is not allowed: share is at least 0 and at most 1"),
    ("share", -0.5, "share=-0.5 is not allowed: share is at least 0 and at most 1"),
    ("power", 0.0, "power=0.0 is not allowed: power is above -1 and below 0"),
    ("steps", 7, "steps=7 is not allowed: steps is at least 8"),
    ("moduli", (5, 4), "moduli=(5, 4) is not allowed: every entry of moduli is above 4"),
    (
        "corners",
        ((0.0, 1.0), (0.0, -1.0)),
        "corners=((0.0, 1.0), (0.0, -1.0)) is not allowed: every entry of corners is at least 0",
    ),
    ("depth", 0, "depth=0 is not allowed: depth is at least 1"),
]
NO_NUMBERS = [("lr", True), ("lr", np.bool_(True)), ("steps", True), ("moduli", (5, True)), ("lr", "0.5")]


@pytest.mark.parametrize(("name", "value", "sentence"), OUTSIDE)
def test_a_value_outside_is_refused_in_one_sentence(name, value, sentence):
    for make in (
        lambda: Ranged(**{name: value}),
        lambda: dataclasses.replace(Ranged(), **{name: value}),
    ):
        with pytest.raises(jd.UsageError) as error:
            make()
        assert str(error.value) == sentence
    with pytest.raises(jd.UsageError, match=f"not allowed: .*{name} is (above|at least)"):
        jd.grid(Ranged, **{name: value})
    with pytest.raises(jd.UsageError, match=f"not allowed: .*{name} is (above|at least)"):
        jd.grid(Ranged, **{name: [getattr(Ranged(), name), value]})


@pytest.mark.parametrize(("name", "value"), NO_NUMBERS)
def test_truth_values_and_text_are_no_numbers(name, value):
    with pytest.raises(jd.UsageError, match=f"not allowed: (every entry of )?{name} is a number"):
        Ranged(**{name: value})


def test_nan_is_in_no_range():
    for nan in (math.nan, np.float64("nan"), np.float32("nan")):
        with pytest.raises(jd.UsageError, match="lr=nan is not allowed: lr is above 0"):
            Ranged(lr=nan)
    with pytest.raises(jd.UsageError, match="every entry of corners is at least 0"):
        Ranged(corners=((0.0, math.nan),))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("lr", "-0.1", "lr=-0.1 is not allowed: lr is above 0"),
        ("lr", "fast", "lr='fast' is not allowed: lr is a finite number"),
        ("moduli", "5:3", r"moduli=\(5, 3\) is not allowed: every entry of moduli is above 4"),
        ("depth", "0", "depth=0 is not allowed: depth is at least 1"),
    ],
)
def test_text_of_the_command_line_is_refused(name, text, sentence):
    with pytest.raises(jd.UsageError, match=sentence):
        coerce(Ranged, name, text)


def test_other_requirements_are_asked_after_the_ranges():
    with pytest.raises(jd.UsageError, match="share=0.25 is not allowed: share is not 1/4"):
        Ranged(share=0.25)
    with pytest.raises(jd.UsageError, match="lr is above 0"):
        Ranged(share=0.25, lr=0)


def test_bounds_that_belong_to_the_range_and_none_are_allowed():
    assert Ranged(share=0, steps=8, depth=None).share == 0 and Ranged(share=1.0, depth=1, rule="adam").share == 1
    assert coerce(Ranged, "depth", "none") is None and coerce(Ranged, "moduli", "5:9") == (5, 9)


@pytest.mark.parametrize("placeholder", [None, object(), -1.0, jax.ShapeDtypeStruct((), "float32"), np.zeros(3)])
def test_flattening_never_looks_at_ranges(placeholder):
    mapped = jax.tree.map(lambda _: placeholder, Ranged())
    assert mapped.lr is placeholder and mapped.steps == 10


def test_traced_values_pass_at_construction_too():
    moved = jax.vmap(lambda lr: dataclasses.replace(Ranged(), lr=-lr, rule="adam").lr)
    out = jax.jit(moved)(jnp.arange(3.0) - 1)
    np.testing.assert_array_equal(out, [1.0, 0.0, -1.0])
    assert Ranged(lr=jax.ShapeDtypeStruct((), "float32")).lr.shape == () and Ranged(lr=None).lr is None


@settings(deadline=None, max_examples=100)
@given(st.floats(allow_nan=True), st.floats(-5, 5), st.floats(0, 5), st.booleans(), st.booleans())
def test_a_range_holds_what_its_comparisons_hold(value, low, width, open_low, open_high):
    high = low + width + 1e-3
    words = {"above" if open_low else "at_least": low, "below" if open_high else "at_most": high}
    cls = jd.setting(type("Some", (), {"__annotations__": {"x": jd.Swept}, "x": jd.field((low + high) / 2, **words)}))
    inside = (value > low if open_low else value >= low) and (value < high if open_high else value <= high)
    try:
        cls(x=value)
    except jd.UsageError as error:
        assert not inside and "x is a" in str(error)
    else:
        assert inside


def test_the_table_of_fields_carries_the_ranges():
    table = {row["name"]: row["range"] for row in field_table(jd.grid(Ranged))}
    assert table["lr"] == {"above": 0} and table["share"] == {"at_least": 0, "at_most": 1} and table["rule"] == {}


def test_a_role_needs_no_range():
    @jd.setting
    class Trained:
        settle: int = jd.field(0, role="time")

    assert Trained(settle=-1).settle == -1 and Trained.ranges == {}


def test_a_subclass_keeps_the_ranges_and_may_set_its_own():
    @jd.setting
    class Narrow(Ranged):
        lr: jd.Swept = 0.5
        steps: int = jd.field(100, at_least=50)

    with pytest.raises(jd.UsageError, match="lr is above 0"):
        Narrow(lr=0)
    with pytest.raises(jd.UsageError, match="steps is at least 50"):
        Narrow(steps=10)
    assert Ranged(steps=10).steps == 10


@jd.setting
class Counts:
    """Swept numbers that a trial rounds."""

    every: jd.Swept = jd.field(2.0, at_least=1, whole=True)
    shift: jd.Swept = jd.field(0.0, whole=True)
    pair: tuple[float, ...] = jd.field((1.0, 2.0), whole=True)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("every", 2.5, "every=2.5 is not allowed: every is a whole number at least 1"),
        ("every", "2.5", "every=2.5 is not allowed: every is a whole number at least 1"),
        ("every", np.float32(1.5), "every=1.5 is not allowed: every is a whole number at least 1"),
        ("every", 0, "every=0.0 is not allowed: every is a whole number at least 1"),
        ("shift", -0.5, "shift=-0.5 is not allowed: shift is a whole number"),
        ("pair", (1.0, 2.5), "pair=(1.0, 2.5) is not allowed: every entry of pair is a whole number"),
    ],
)
def test_a_count_is_not_rounded(name, value, sentence):
    with pytest.raises(jd.UsageError) as error:
        coerce(Counts, name, value)
    assert str(error.value) == sentence
    if not isinstance(value, str):
        with pytest.raises(jd.UsageError, match="whole number|at least 1"):
            jd.grid(Counts, **{name: value if isinstance(value, tuple) else [1.0, value]})


def test_whole_numbers_of_all_types_are_counts():
    assert {coerce(Counts, "every", v) for v in (3, 3.0, "3", "3.0", np.int32(3), np.float32(3))} == {3.0}
    assert Counts(every=jnp.float32(3.0), shift=-2).shift == -2
    jax.eval_shape(lambda x: Counts(every=x), 2.5)  # a traced one is no number yet
    assert [row["type"] for row in field_table(jd.grid(Counts))][:2] == ["a whole number"] * 2


BAD_FIELDS = [
    (jd.Swept, lambda: jd.field(0, above=0), "Bad.x=0 is not allowed: Bad.x is above 0"),
    (tuple[int, ...], lambda: jd.field((1, 0), above=0), r"Bad.x=\(1, 0\) is not allowed: every entry of Bad.x is above 0"),
    (str, lambda: jd.field("a", above=0), "Bad.x is a word: a range is for numbers and tuples of numbers"),
    (bool, lambda: jd.field(True, above=0), "Bad.x is true or false: a range is for numbers"),
    (tuple[str, ...], lambda: jd.field((), above=0), "a range is for numbers"),
    (int, lambda: jd.field(1), "jd.field needs a bound"),
    (jd.Swept, lambda: jd.field(1, whole="yes"), "whole=yes is not allowed: it is True or False"),
    (jd.Swept, lambda: jd.field(1.5, whole=True), "Bad.x=1.5 is not allowed: Bad.x is a whole number"),
    (str, lambda: jd.field("a", whole=True), "Bad.x is a word: a range is for numbers and tuples of numbers"),
    (int, lambda: jd.field(1, role="speed"), "role=speed is not allowed: it is rate, time, treatment, breach or none"),
    (int, lambda: jd.field(1, above=0, at_least=0), "one lower and one upper bound, got above, at_least"),
    (int, lambda: jd.field(1, above=math.nan), "finite numbers, got nan"),
    (int, lambda: jd.field(1, above=1, at_most=1), "no number is above 1 and at most 1"),
    (int, lambda: jd.field(1, at_least=2, at_most=1), "no number is at least 2 and at most 1"),
]


@pytest.mark.parametrize(("hint", "make", "sentence"), BAD_FIELDS)
def test_what_is_no_range_is_refused_when_the_class_is_made(hint, make, sentence):
    with pytest.raises(jd.UsageError, match=sentence):
        jd.setting(type("Bad", (), {"__annotations__": {"x": hint}, "x": make()}))
