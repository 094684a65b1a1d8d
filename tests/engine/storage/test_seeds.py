"""Seeds as ranges and tuples: the same numbers, and where common ones stand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.engine.storage.seeds import places, seed_array, seeds_of

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
