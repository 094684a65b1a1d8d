"""Values of fields: coerced, or refused in one sentence."""

import decimal
import fractions
from typing import Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.fields import coerce


@jd.setting
class Strict:
    """Its ``__init__`` refuses everything but positive Python numbers."""

    a: jd.Swept = 1.0
    mode: jd.Code = jd.code("one", "two", "three")
    n: int = 2

    def __post_init__(self):
        assert type(self.a) in (int, float) and self.a > 0, "ran __init__ on something that is no number"


@jd.setting
class Wide:
    """Any number."""

    a: jd.Swept = 1.0


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
    ("size", 2**63, "from -2**63 to 2**63 - 1"),
    ("size", "-9223372036854775809", "from -2**63 to 2**63 - 1"),
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


def test_a_value_that_is_an_option_itself_is_not_taken_for_the_text_of_another():
    @jd.setting
    class Options:
        one: Literal[1, "1", None, "none"] = 1
        word: str | None = None

    for value in (1, "1", None, "none"):
        held = coerce(Options, "one", value)
        assert held == value and type(held) is type(value)
    assert coerce(Options, "word", None) is None and coerce(Options, "word", "some") == "some"
    with pytest.raises(jd.UsageError, match="word='none' is not allowed: it could be None or this text"):
        coerce(Options, "word", "none")


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


@given(st.integers(-(2**60), 2**60), st.sampled_from([int, str, np.int64, lambda value: f" +{value} ".replace("+-", "-")]))
def test_a_whole_number_that_is_no_float_is_refused(value, as_given):
    given_ = as_given(value)
    if value == float(value):
        assert coerce(Wide, "a", given_) == value
        return
    nearest = f"float64 does not hold this whole number; the nearest is {int(float(value))}"
    with pytest.raises(jd.UsageError, match=f"is not allowed: {nearest}"):
        coerce(Wide, "a", given_)
