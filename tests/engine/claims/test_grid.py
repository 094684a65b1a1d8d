"""Grids: products of axes, in the precision of the setting."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.claims.grid import field_table
from jaxdyn.errors import UsageError

FINITE = st.floats(1e-6, 1e6)


@jd.setting
class Optional:
    """Fields that are tuples, or missing."""

    words: tuple[str, ...] = ("x",)
    sizes: tuple[int, ...] | None = None


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
    assert table["rate"] == {"name": "rate", "kind": "swept", "type": "a number", "range": {}, "role": "rate", "value": [1.0, 2.0]}
    assert table["optimizer"]["type"] == "one of gd, sign"
    assert table["size"] == {"name": "size", "kind": "static", "type": "a whole number", "range": {}, "role": "none", "value": 3}
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


WORDS = st.lists(st.lists(st.sampled_from(["a", "b", "a:b", ":", ""]), max_size=3).map(tuple), min_size=1, max_size=5, unique=True)


@given(WORDS)
def test_every_value_of_an_axis_has_a_label_of_its_own(words):
    """A Dataset whose labels repeat gives, asked for one setting, the runs of two."""
    made = jd.grid(Optional, words=words)
    labels = made.labels("words")
    if len(set(labels)) == len(words):
        assert [cell.words for cell in made.cells()] == words
    else:
        with pytest.raises(UsageError, match="words: .* are not allowed together: both would be labelled"):
            made.cells()


def test_labels_of_missing_values_and_of_tuples():
    made = jd.grid(Optional, sizes=[None, (1, 2), ()], words=[("x", "y")])
    assert made.labels("sizes") == ["none", "1:2", ""] and made.labels("words") == ["x:y"]
    assert [cell.sizes for cell in made.cells()] == [None, (1, 2), ()]
    assert jd.grid(Single, lr=[0.1, 0.2]).labels("lr") == [0.1, 0.2]


def test_minus_zero_is_zero():
    (cell,) = jd.grid(Single, lr=[-0.0]).cells()
    assert math.copysign(1, cell.lr) == 1
    with pytest.raises(UsageError, match="the values of an axis must differ"):
        jd.grid(Single, lr=[0.0, -0.0])


@pytest.mark.parametrize("dtype", ["float33", "int32", "complex64", "", ","])
def test_a_precision_that_is_none_is_refused(dtype):
    with pytest.raises(UsageError, match=f"dtype='{dtype}' is not allowed: it is float64, float32, bfloat16 or float16"):
        jd.grid(Single, dtype=dtype).cells()


@jd.setting
class Cached:
    """A field of which xarray would make a dictionary."""

    keys: int = 4
    rate: jd.Swept = 1.0


def counted(s, key):
    """A trial with an axis of that name, too."""
    return jd.observables(measured={"n": jd.named(jnp.arange(3) * s.rate, "keys" if s.keys > 4 else "key")})


def test_a_field_or_an_axis_called_keys_is_refused_where_xarray_would_take_arrays_for_dictionaries():
    ds = jd.sweep(counted, jd.grid(Cached, rate=[1.0, 2.0]), 2)
    assert ds.measured_n.astype(int).sum() == 18  # as one value for all runs it is nobody's coordinate
    for varied in (jd.grid(Cached, keys=[3, 4]), jd.points(Cached, [{"keys": 3}, {"keys": 4}])):
        with pytest.raises(UsageError, match="^Cached.keys is not allowed to vary: xarray takes arrays .*; rename the field$"):
            jd.sweep(counted, varied, 2)
    with pytest.raises(UsageError, match="^measured_n.*: an axis called keys is not allowed: xarray takes .*; rename it$"):
        jd.sweep(counted, jd.grid(Cached, keys=5), 2)
