"""What is stored: arrays, seeds, and shards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.engine.storage import shard
from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.seeds import places, seed_array, seeds_of

# Arrays of some runs: their form is known before they are read.


def test_the_form_of_an_array_is_without_the_leading_axes():
    whole = Arrays({"x": np.zeros((3, 2, 5), np.float32), "n": np.zeros((3, 2), np.int8)}, {"x": ("entry",), "n": ()}, {})
    assert whole.form("x") == (np.float32, (5,)) and whole.form("n") == (np.int8, ())


def test_arrays_that_are_not_read_have_the_form_that_was_written():
    later = Arrays({}, {"x": ("entry",)}, {}, forms={"x": (np.dtype("float64"), (7,))})
    assert later.form("x") == (np.float64, (7,))


# Seeds as ranges and tuples: the same numbers, and where common ones stand.

SEEDS = st.one_of(
    st.builds(lambda start, n: range(start, start + n), st.integers(0, 30), st.integers(1, 12)),
    st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(seeds_of),
)


def chosen(seeds, where):
    return seed_array(seeds, np.int64)[where].tolist()


@settings(deadline=None, max_examples=200)
@given(SEEDS, SEEDS)
def test_common_seeds_are_found_in_both(own, wanted):
    one, other = places(own, wanted)
    assert sorted(chosen(own, one)) == sorted(set(own) & set(wanted))
    assert chosen(own, one) == chosen(wanted, other)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9))
def test_a_range_stands_for_the_same_numbers(numbers):
    kept = seeds_of(numbers)
    assert list(kept) == numbers and seed_array(kept, np.int64).tolist() == numbers
    consecutive = all(b == a + 1 for a, b in zip(numbers, numbers[1:], strict=False))
    assert isinstance(kept, range) is consecutive
    assert seeds_of(np.array(numbers)) == kept and seeds_of(tuple(numbers)) == kept


@pytest.mark.parametrize("numbers", [range(3, 9), range(0), range(5, 6)])
def test_ranges_stay(numbers):
    assert seeds_of(numbers) is numbers and seed_array(numbers).dtype == np.uint32


# Shards: what is written comes back, in any dtype, packed without loss, and as a whole or array by array.


@pytest.mark.parametrize(
    "value", [np.array([True, False]), np.arange(3), np.float32([1, 2]), np.array([1 + 2j, 3.0]), np.uint8([1, 255])]
)
def test_kinds_of_arrays_survive_storage(value, tmp_path):
    block = value[None, None]
    dims, coords = {"x": ("entry",), "status": ()}, {"entry": tuple(range(len(value)))}
    arrays = Arrays({"x": block, "status": np.zeros((1, 1), np.int32)}, dims, coords)
    path = shard.write_shard(tmp_path, "abc", "c" * 20, [(0.5, "gd")], range(7, 8), arrays)
    assert shard.stored_shards(tmp_path, "abc") == [path]
    cells, result = shard.read_shard(path)
    assert cells == [(0.5, "gd")] and result.facts["seeds"] == range(7, 8) and result.dims["x"] == ("entry",)
    np.testing.assert_array_equal(result.arrays["x"], block)
    assert result.arrays["x"].dtype == block.dtype and result.coords == {"entry": tuple(range(len(value)))}


def test_large_arrays_are_compressed_without_loss(tmp_path):
    smooth = np.linspace(0.0, 1.0, 20_000).reshape(1, 2, -1).round(3)
    result = Arrays({"curve": smooth, "one": np.ones((1, 2))}, {"curve": ("time",), "one": ()}, {})
    path = shard.write_shard(tmp_path, "p" * 20, "c" * 20, [(0.5,), (1.5,)], range(3, 4), result)
    assert path.stat().st_size < smooth.nbytes / 4
    _, read = shard.read_shard(path)
    np.testing.assert_array_equal(read.arrays["curve"], smooth)
    np.testing.assert_array_equal(read.arrays["one"], 1.0)


def test_an_array_is_packed_in_few_blocks(tmp_path, monkeypatch):
    """As a whole where it is no larger than a block, else some rows at a time; the bits are the same."""
    import h5py

    noise = np.random.default_rng(0).integers(0, 9, size=(7, 2, 30, 11)).astype(float)
    result = Arrays({"noise": noise, "none": np.ones((7, 2, 0))}, {"noise": ("time", "node"), "none": ("empty",)}, {})
    for block, rows in ((1 << 25, 7), (3 * noise[0].nbytes, 3), (1, 1)):
        monkeypatch.setattr(shard, "BLOCK", block)
        path = shard.write_shard(tmp_path / str(block), "p" * 20, "c" * 20, [(0.5,), (1.5,)], range(7), result)
        with h5py.File(path) as file:
            assert file["noise"].chunks == (rows, 2, 30, 11)
        np.testing.assert_array_equal(shard.read_shard(path)[1].arrays["noise"], noise)


def test_digits_of_random_numbers_are_not_packed(tmp_path):
    """Which saves a tenth and takes most of the time; what is random in some rows only is packed."""
    import h5py

    noise = np.random.default_rng(0).normal(size=(50, 2, 400))
    half = np.concatenate([noise[:25], np.zeros_like(noise[25:])])
    arrays = Arrays({"noise": noise, "half": half}, {"noise": ("time",), "half": ("time",)}, {})
    path = shard.write_shard(tmp_path, "p" * 20, "c" * 20, [(0.5,), (1.5,)], range(50), arrays)
    with h5py.File(path) as file:
        assert file["noise"].compression is None and file["half"].compression == "gzip"
    read = shard.read_shard(path)[1].arrays
    np.testing.assert_array_equal(read["noise"], noise)
    np.testing.assert_array_equal(read["half"], half)


def test_arrays_are_read_when_they_are_asked_for(tmp_path):
    arrays = Arrays({"x": np.arange(6.0).reshape(3, 2), "n": np.ones((3, 2), bool)}, {"x": (), "n": ()}, {}, {"cpu_seconds": 2.0})
    path = shard.write_shard(tmp_path, "p" * 20, "c" * 20, [(0.5,), (1.5,)], range(3), arrays)
    cells, whole = shard.read_shard(path)
    same, later = shard.open_shard(path)
    assert same == cells and later.facts == whole.facts == {"cpu_seconds": 2.0, "seeds": range(3)} and later.dims == whole.dims
    assert set(later.arrays) == {"x", "n"} and len(later.arrays) == 2
    assert all(later.form(name) == whole.form(name) for name in whole.arrays)
    np.testing.assert_array_equal(later.arrays["x"], arrays.arrays["x"])
    assert later.arrays["n"].dtype == bool
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(shard.StoreError, match="damaged"):
        later.arrays["x"]


def test_reading_marks_a_shard_as_used(tmp_path):
    arrays = Arrays({"x": np.zeros((1, 1))}, {"x": ()}, {})
    path = shard.write_shard(tmp_path, "p" * 20, "c" * 20, [()], range(1), arrays)
    before = path.stat()
    shard.mark_used(path)
    assert path.stat().st_atime_ns > before.st_atime_ns - 1 and path.stat().st_mtime_ns == before.st_mtime_ns
    shard.mark_used(tmp_path / "none.nc")
