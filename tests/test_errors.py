"""Refusals have one wording, and one notion of a number."""

import fractions
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.errors import flag, is_traced, number, shown, whole

SOME = settings(deadline=None, max_examples=80, derandomize=True)
WHOLE = {  # libraries' whole numbers
    "Python": int,
    "NumPy": np.int64,
    "NumPy, short": np.int16,
    "NumPy's array": np.asarray,
    "JAX": jnp.int32,
    "xarray": xr.DataArray,
}
REAL = {"Python": float, "NumPy": np.float64, "NumPy's array": np.asarray, "JAX": jnp.float32, "fraction": fractions.Fraction}
NONE = [True, np.True_, jnp.asarray(False), "1", b"1", None, 1j, np.complex64(1), [1], np.asarray([1]), jnp.ones(1), object()]


@jd.setting
class Sizes:
    """A setting with three rules."""

    classes: int = 4
    odds: jd.Swept = 0.5
    optimizer: jd.Code = jd.code("gd", "adam")

    def __post_init__(self):
        jd.require(self, self.classes >= 2, "classes is at least 2", "classes")
        jd.require(self, self.odds < self.classes, "odds is below classes", "odds", "classes")
        jd.require(self, self.optimizer == "gd" or self.classes < 9, "adam takes at most 8 classes", "optimizer", "classes")


def test_the_message_names_the_fields_and_what_is_allowed():
    Sizes()
    with pytest.raises(jd.UsageError, match=r"^classes=1 is not allowed: classes is at least 2$"):
        Sizes(classes=1)
    with pytest.raises(jd.UsageError, match=r"^odds=5.0, classes=4 are not allowed: odds is below classes$"):
        Sizes(odds=5.0)
    with pytest.raises(jd.UsageError, match=r"^optimizer=adam, classes=9 are not allowed: adam takes"):
        Sizes(optimizer="adam", classes=9)


@SOME
@given(st.sampled_from(list(WHOLE)), st.integers(-300, 300), st.integers(-3, 3), st.integers(0, 5))
def test_a_whole_number_is_pythons_whichever_library_it_is_of(kind, value, least, width):
    given_ = WHOLE[kind](value)
    if least <= value <= least + width:
        found = whole("n", given_, least=least, most=least + width)
        assert found == value and type(found) is int
    else:
        with pytest.raises(jd.UsageError) as error:
            whole("n", given_, least=least, most=least + width)
        assert str(error.value).endswith(f" is not allowed: n is at least {least} and at most {least + width}")
        assert "\n" not in str(error.value)


@SOME
@given(st.sampled_from(list(REAL)), st.integers(-40, 40))
def test_a_number_is_pythons_whichever_library_it_is_of(kind, eighths):
    value = eighths / 8
    if 0 < value < 1:
        found = number("x", REAL[kind](value), above=0, below=1)
        assert found == value and type(found) is float
    else:
        with pytest.raises(jd.UsageError, match="is not allowed: x is above 0 and below 1$"):
            number("x", REAL[kind](value), above=0, below=1)
    assert number("x", np.int8(3), least=3, most=3) == 3.0 and number("x", jnp.bfloat16(0.5)) == 0.5


@pytest.mark.parametrize("value", NONE, ids=lambda x: type(x).__name__)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(jd.UsageError, match="is not allowed: n is a whole number, at least 0$"):
        whole("n", value, least=0)
    with pytest.raises(jd.UsageError, match="is not allowed: x is a finite number$"):
        number("x", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -np.inf, np.float32("nan"), jnp.asarray(math.inf), 10**400])
def test_only_finite_numbers_are_numbers(value):
    with pytest.raises(jd.UsageError, match="is not allowed: x is a finite number, above 0$"):
        number("x", value, above=0)


def test_floats_are_no_whole_numbers():
    for value in (1.0, np.float64(1), jnp.asarray(1.0), math.nan):
        with pytest.raises(jd.UsageError, match=f"^n={value} is not allowed: n is a whole number$"):
            whole("n", value)


def test_truth_values_are_no_numbers_and_no_words():
    assert flag("on", True) is True and flag("on", np.False_) is False and flag("on", jnp.asarray(True)) is True
    for value in (1, 0.0, "yes", None, np.asarray([True]), np.int64(1)):
        with pytest.raises(jd.UsageError, match="is not allowed: on is True or False$"):
            flag("on", value)


def test_what_is_traced_passes_by_dtype_and_shape_where_it_may():
    seen = []

    @jax.jit
    def trace(n, x, many, truth):
        seen.extend(is_traced(value) for value in (n, x, 3, np.float64(1), None))
        assert whole("n", n, least=5, traced=True) is n and number("x", x, below=0, traced=True) is x
        assert number("x", n, traced=True) is n
        for call in (
            lambda: whole("n", n),
            lambda: whole("n", x, traced=True),
            lambda: whole("n", many, traced=True),
            lambda: whole("n", truth, traced=True),
            lambda: number("x", x),
            lambda: number("x", many, traced=True),
            lambda: number("x", truth, traced=True),
            lambda: flag("on", truth),
        ):
            with pytest.raises(jd.UsageError, match=r"^\w+=(int32|float32|bool)\[3?\] is not allowed"):
                call()
        return n

    trace(1, 2.0, jnp.arange(3), True)
    assert seen == [True, True, False, False, False]


def test_values_are_shown_on_one_line():
    assert shown(np.zeros((2, 3), np.float32)) == "float32[2,3]" and shown(np.int64(3)) == "3"
    assert len(shown("a\nb" * 100)) == 61 and "\n" not in shown("a\nb" * 100)
    assert shown(10**5000) == "a number of thousands of digits"
