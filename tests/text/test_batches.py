"""Columns and windows against loops over single tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.errors import UsageError
from jaxdyn.text import columns, window, windows_in

sliced = jax.jit(window, static_argnums=2)


@settings(deadline=None, max_examples=100)
@given(size=st.integers(2, 200), count=st.integers(1, 20))
def test_columns_are_contiguous_text(size, count):
    stream = np.arange(size, dtype=np.int32)
    if size // count < 2:
        with pytest.raises(UsageError, match="too short for"):
            columns(stream, count)
        return
    cut = columns(stream, count)
    length = size // count
    assert cut.shape == (count, length) and cut.dtype == np.int32
    assert cut.tolist() == [[stream[c * length + t] for t in range(length)] for c in range(count)]


@settings(deadline=None, max_examples=60)
@given(total=st.integers(2, 40), length=st.integers(1, 40))
def test_number_of_windows(total, length):
    cut = np.zeros((2, total), np.int32)
    full = sum(start + length <= total - 1 for start in range(0, total, length))
    if full == 0:
        with pytest.raises(UsageError, match="too short for a window"):
            windows_in(cut, length)
    else:
        assert windows_in(cut, length) == full


@pytest.mark.parametrize(("total", "length"), [(21, 5), (20, 5), (9, 8), (7, 1)])
def test_windows_are_those_of_the_loop(total, length):
    cut = columns(np.random.default_rng(0).integers(0, 99, 3 * total).astype(np.int32), 3)
    for index in range(windows_in(cut, length)):
        places = range(index * length, (index + 1) * length)
        inputs, targets = window(cut, index, length)
        assert inputs.tolist() == [[cut[c, t] for t in places] for c in range(3)]
        assert targets.tolist() == [[cut[c, t + 1] for t in places] for c in range(3)]
        assert inputs.dtype == targets.dtype == np.int32


@pytest.mark.parametrize("wide", [False, True])
def test_traced_index_under_jit_and_vmap(wide):
    cut = columns(np.arange(100, dtype=np.int32), 4)
    with jax.enable_x64(wide):
        alone = [window(cut, index, 6) for index in range(4)]
        batched = jax.vmap(lambda index: window(cut, index, 6))(np.arange(4))
        for index, (inputs, targets) in enumerate(alone):
            traced = sliced(cut, np.int32(index), 6)
            assert np.array_equal(traced[0], inputs) and np.array_equal(traced[1], targets)
            assert np.array_equal(batched[0][index], inputs) and np.array_equal(batched[1][index], targets)


def test_traced_index_is_moved_inside():
    cut = columns(np.arange(26, dtype=np.int32), 1)
    assert sliced(cut, np.int32(99), 5)[1].tolist() == [[21, 22, 23, 24, 25]]


def test_wrong_sizes():
    cut = np.zeros((2, 11), np.int32)
    with pytest.raises(UsageError, match="count=0 is not allowed: count is at least 1"):
        columns(cut[0], 0)
    for call in (lambda: windows_in(cut, 0), lambda: window(cut, 0, 0)):
        with pytest.raises(UsageError, match="length=0 is not allowed: length is at least 1"):
            call()
    with pytest.raises(UsageError, match="too short for a window of 11 inputs"):
        window(cut, 0, 11)
    for index in (-1, 2, np.int64(2)):
        with pytest.raises(UsageError, match=f"index={index} is not allowed: index is at least 0 and at most 1"):
            window(cut, index, 5)


NUMBERS = [int, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.array, jnp.asarray, lambda i: np.array(i, np.int8)]


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_of_any_library_is_a_number(kind):
    """Also a narrow one, whose product with the length it cannot hold."""
    cut = columns(np.arange(1000, dtype=np.int32), kind(1))
    assert windows_in(cut, kind(5)) == 199
    for index in (0, 30, 127):
        assert window(cut, kind(index), kind(5))[0].tolist() == [list(range(5 * index, 5 * index + 5))]
    with pytest.raises(UsageError, match="index=.* is not allowed"):
        window(cut, kind(100), kind(20))


@pytest.mark.parametrize("wrong", [True, np.True_, 2.0, np.float32(2), "2", None, [2], np.array([1, 2]), float("nan")])
def test_what_is_no_whole_number_is_refused(wrong):
    cut = columns(np.arange(100, dtype=np.int32), 1)
    calls = (
        lambda: columns(cut[0], wrong),
        lambda: windows_in(cut, wrong),
        lambda: window(cut, 0, wrong),
        lambda: window(cut, wrong, 5),
    )
    for name, call in zip(("count", "length", "length", "index"), calls, strict=True):
        with pytest.raises(UsageError, match=f"{name}=.* is not allowed: {name} is a whole number"):
            call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("index", [-(2**31), -1, 0, 3, 4, 99, 200, 10**9, 2**31 - 1, 2**32 - 1])
def test_traced_numbers_outside_give_the_first_or_the_last_window(dtype, index):
    facts = np.iinfo(dtype)
    if not facts.min <= index <= facts.max:
        return
    cut = columns(np.arange(28, dtype=np.int32), 1)  # five windows, and two tokens more
    expected = window(cut, min(max(index, 0), 4), 5)
    for found, right in zip(sliced(cut, jnp.asarray(index, dtype), 5), expected, strict=True):
        assert found.tolist() == right.tolist()


def test_streams_and_columns_of_other_shapes_are_refused():
    with pytest.raises(UsageError, match="a stream is one row of tokens"):
        columns(np.zeros((4, 5), np.int32), 2)
    for wrong in (np.zeros(5, np.int32), np.zeros((1, 2, 3), np.int32)):
        with pytest.raises(UsageError, match="columns have two axes"):
            windows_in(wrong, 1)
    with pytest.raises(UsageError, match="a stream of 0 tokens is too short for 1 columns"):
        columns(np.zeros(0, np.int32), 1)
