"""Finite Abelian groups against tables written from their definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.abelian import LIMIT, Abelian, parse

GROUPS = ("2", "5", "8", "2x4", "3x3", "2x3x2")


@pytest.mark.parametrize("name", GROUPS)
def test_tables_from_the_definition(name):
    group, sizes = parse(name), tuple(map(int, name.split("x")))
    elements = list(itertools.product(*map(range, sizes)))
    number = {g: i for i, g in enumerate(elements)}
    assert str(group) == name and group.order == len(elements)
    for i, g in enumerate(elements):
        assert group.negative[i] == number[tuple(-x % n for x, n in zip(g, sizes, strict=True))]
        for j, h in enumerate(elements):
            assert group.add[i, j] == number[tuple((x + y) % n for x, y, n in zip(g, h, sizes, strict=True))]
            angle = 2 * np.pi * sum(x * y / n for x, y, n in zip(g, h, sizes, strict=True))
            assert abs(group.characters[i, j] - np.exp(1j * angle)) < 1e-13


@pytest.mark.parametrize("name", GROUPS)
def test_characters_are_orthogonal_homomorphisms(name):
    group = parse(name)
    chi, d = group.characters, group.order
    assert np.allclose(chi @ chi.conj().T, d * np.eye(d), atol=1e-12)
    assert np.allclose(chi[:, group.add], chi[:, :, None] * chi[:, None], atol=1e-12)
    assert np.allclose(chi[group.negative], chi.conj(), atol=1e-14)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(2, 5), min_size=1, max_size=3))
def test_frequencies_are_zero_real_or_in_pairs(sizes):
    group = Abelian(tuple(sizes))
    other = group.negative[group.pairs]
    every = np.concatenate([[0], group.real, group.pairs, other])
    assert sorted(every) == list(range(group.order))
    assert np.abs(group.characters[group.real].imag).max(initial=0) < 1e-14
    assert len(group.real) == 2 ** sum(n % 2 == 0 for n in sizes) - 1


def test_numbers_of_elements_are_reduced():
    assert list(parse("2x4").number(np.array([[3, 5], [-1, -1]]))) == [5, 7]


@pytest.mark.parametrize("name", ["", "x", "2x", "1", "0x3", "-3", "2.5", "3 x 3", "a"])
def test_what_names_no_group_is_refused(name):
    with pytest.raises(jd.UsageError, match="a group is"):
        parse(name)


def test_factors_are_whole_numbers():
    with pytest.raises(jd.UsageError, match="a group is"):
        Abelian((2.0,))
    assert hash(parse("2x3")) == hash(Abelian((2, 3))) and parse("2x3") != parse("3x2")


@pytest.mark.parametrize("sizes", [(True,), (1,), (-2,), (np.bool_(True),), ("3",), (None,), (float("nan"),), ()])
def test_factors_that_are_no_groups_are_refused(sizes):
    with pytest.raises(jd.UsageError, match="a group is a product of cyclic groups with at least 2 elements each"):
        Abelian(sizes)


def test_factors_of_numpy_and_too_large_groups():
    assert Abelian((np.int64(2), np.int8(3))) == Abelian((2, 3))
    assert len(Abelian((LIMIT,)).elements) == LIMIT
    for name in ("4097", "999999", "64x65", "x".join(["2"] * 13)):
        with pytest.raises(jd.UsageError, match="is too large: at most 4096 elements are allowed"):
            parse(name)
    for name in ("9" * 7, "9" * 5000, "²", "٣"):
        with pytest.raises(jd.UsageError, match="is not allowed: a group is named by"):
            parse(name)
