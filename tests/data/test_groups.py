"""Families of groups against matrices, permutations and maps multiplied by themselves, and against known facts."""

import collections
import itertools
import math

import numpy as np
import pytest

from jaxdyn.data import abelian, groups
from jaxdyn.data.groups import Group, parse
from jaxdyn.errors import UsageError
from tests.data.limits import within

# name: order, class sizes, size of the centre, elements of each order
FACTS = {
    "7": (7, {1: 7}, 7, {1: 1, 7: 6}),
    "2x2x2": (8, {1: 8}, 8, {1: 1, 2: 7}),
    "4x6": (24, {1: 24}, 24, {1: 1, 2: 3, 3: 2, 4: 4, 6: 6, 12: 8}),
    "S2": (2, {1: 2}, 2, {1: 1, 2: 1}),
    "S3": (6, {1: 1, 2: 1, 3: 1}, 1, {1: 1, 2: 3, 3: 2}),
    "S4": (24, {1: 1, 3: 1, 6: 2, 8: 1}, 1, {1: 1, 2: 9, 3: 8, 4: 6}),
    "S5": (120, {1: 1, 10: 1, 15: 1, 20: 2, 24: 1, 30: 1}, 1, {1: 1, 2: 25, 3: 20, 4: 30, 5: 24, 6: 20}),
    "A3": (3, {1: 3}, 3, {1: 1, 3: 2}),
    "A4": (12, {1: 1, 3: 1, 4: 2}, 1, {1: 1, 2: 3, 3: 8}),
    "A5": (60, {1: 1, 12: 2, 15: 1, 20: 1}, 1, {1: 1, 2: 15, 3: 20, 5: 24}),
    "D4": (8, {1: 2, 2: 3}, 2, {1: 1, 2: 5, 4: 2}),
    "D5": (10, {1: 1, 2: 2, 5: 1}, 1, {1: 1, 2: 5, 5: 4}),
    "D6": (12, {1: 2, 2: 2, 3: 2}, 2, {1: 1, 2: 7, 3: 2, 6: 2}),
    "Q8": (8, {1: 2, 2: 3}, 2, {1: 1, 2: 1, 4: 6}),
    "Q12": (12, {1: 2, 2: 2, 3: 2}, 2, {1: 1, 2: 1, 3: 2, 4: 6, 6: 2}),
    "Q16": (16, {1: 2, 2: 3, 4: 2}, 2, {1: 1, 2: 1, 4: 10, 8: 4}),
    "F7:3": (21, {1: 1, 3: 2, 7: 2}, 1, {1: 1, 3: 14, 7: 6}),
    "F5:4": (20, {1: 1, 4: 1, 5: 3}, 1, {1: 1, 2: 5, 4: 10, 5: 4}),
    "H3": (27, {1: 3, 3: 8}, 3, {1: 1, 3: 26}),
    "H5": (125, {1: 5, 5: 24}, 5, {1: 1, 5: 124}),
    "SL2:3": (24, {1: 2, 4: 4, 6: 1}, 2, {1: 1, 2: 1, 3: 8, 4: 6, 6: 8}),
    "SL2:5": (120, {1: 2, 12: 4, 20: 2, 30: 1}, 2, {1: 1, 2: 1, 3: 20, 4: 30, 5: 24, 6: 20, 10: 24}),
    "PSL2:7": (168, {1: 1, 21: 1, 24: 2, 42: 1, 56: 1}, 1, {1: 1, 2: 21, 3: 56, 4: 42, 7: 48}),
    "3xS3": (18, {1: 3, 2: 3, 3: 3}, 3, {1: 1, 2: 3, 3: 8, 6: 6}),
}
SAME = [
    ("S3", "D3"),
    ("S3", "F3:2"),
    ("S3", "SL2:2"),
    ("S3", "PSL2:2"),
    ("A4", "PSL2:3"),
    ("A5", "PSL2:5"),
    ("D4", "H2"),
    ("D5", "F5:2"),
]
SAME += [("F8:1", "8"), ("D6", "2xS3"), ("3x5", "15"), ("D15", "F15:g14"), ("D4xD5", "D5xD4")]


def facts(group: Group) -> tuple:
    classes, orders = (dict(sorted(collections.Counter(x.tolist()).items())) for x in (group.class_sizes, group.element_orders))
    return group.order, classes, len(group.centre), orders


@pytest.mark.parametrize("name", FACTS)
def test_orders_classes_centres_and_orders_of_elements(name):
    group = parse(name)
    assert facts(group) == FACTS[name]
    assert group.name == name and group.identity == 0 and parse(name) is not None
    assert group.abelian == (len(group.centre) == group.order)


@pytest.mark.parametrize(("first", "second"), SAME)
def test_two_constructions_of_one_group_have_the_same_invariants(first, second):
    assert facts(parse(first)) == facts(parse(second))


def permutation_matrices(n: int, even: bool) -> list[np.ndarray]:
    """In lexicographic order; those of determinant 1 where only even ones are asked for."""
    matrices = [np.eye(n, dtype=int)[:, list(p)] for p in itertools.permutations(range(n))]
    return [m for m in matrices if not even or round(np.linalg.det(m)) == 1]


def heisenberg(a: int, b: int, c: int) -> np.ndarray:
    return np.array([[1, a, c], [0, 1, b], [0, 0, 1]])


def quaternions(n: int) -> list[np.ndarray]:
    """A = diag(w, 1/w), w of order 2n, and x with x^2 = -1."""
    a, x = np.diag([np.exp(1j * np.pi / n), np.exp(-1j * np.pi / n)]), np.array([[0, 1], [-1, 0]])
    return [np.linalg.matrix_power(a, i) @ np.linalg.matrix_power(x, j) for j in range(2) for i in range(2 * n)]


def polygon(n: int) -> list[np.ndarray]:
    c, s = np.cos(2 * np.pi / n), np.sin(2 * np.pi / n)
    rotation, mirror = np.array([[c, -s], [s, c]]), np.diag([1.0, -1.0])
    return [np.linalg.matrix_power(rotation, i) @ np.linalg.matrix_power(mirror, j) for j in range(2) for i in range(n)]


def maps(q: int, multipliers: list[int]) -> list[np.ndarray]:
    return [np.array([[a, b], [0, 1]]) for a in multipliers for b in range(q)]


def unimodular(p: int) -> list[np.ndarray]:
    matrices = [np.array(m).reshape(2, 2) for m in itertools.product(range(p), repeat=4) if (m[0] * m[3] - m[1] * m[2]) % p == 1]
    return [np.eye(2, dtype=int)] + [m for m in matrices if not (m == np.eye(2)).all()]


@pytest.mark.parametrize(
    ("name", "matrices", "modulus"),
    [
        ("6", [np.array([[1, m], [0, 1]]) for m in range(6)], 6),
        ("S4", permutation_matrices(4, even=False), None),
        ("A4", permutation_matrices(4, even=True), None),
        ("D5", polygon(5), None),
        ("Q8", quaternions(2), None),
        ("Q12", quaternions(3), None),
        ("F7:3", maps(7, [1, 2, 4]), 7),
        ("F8:4", maps(8, [1, 3, 5, 7]), 8),
        ("F8:g3", maps(8, [1, 3]), 8),
        ("H3", [heisenberg(*m) for m in itertools.product(range(3), repeat=3)], 3),
        ("SL2:3", unimodular(3), 3),
        ("2x3", [np.diag([(-1) ** i, np.exp(2j * np.pi * j / 3)]) for i in range(2) for j in range(3)], None),
    ],
)
def test_table_is_that_of_matrices_in_the_documented_order(name, matrices, modulus):
    m, table = np.array(matrices), parse(name).table
    assert len(m) == len(table) and len({np.round(x, 6).tobytes() for x in m + 0j + 0.0}) == len(m)
    products, expected = m[:, None] @ m[None], m[table]
    assert np.allclose(products % modulus if modulus else products, expected, atol=1e-12)


@pytest.mark.parametrize("p", [3, 5])
def test_projective_group_is_the_linear_one_up_to_sign(p):
    matrices = [m for m in unimodular(p) if tuple(m.flat) <= tuple((-m % p).flat)]
    table = groups.projective_linear(p).table
    for (i, g), (j, h) in itertools.product(enumerate(matrices), repeat=2):
        product, expected = g @ h % p, matrices[table[i, j]]
        assert (product == expected).all() or (product == -expected % p).all()


def test_products_multiply_factor_by_factor():
    first, second = parse("S3"), parse("Q8")
    table = groups.product(first, second).table
    for (i, j), (m, n) in itertools.product(itertools.product(range(6), range(8)), repeat=2):
        assert table[8 * i + j, 8 * m + n] == 8 * first.table[i, m] + second.table[j, n]


@pytest.mark.parametrize("name", ["23", "2x4", "2x3x2", "4x7"])
def test_abelian_groups_agree_with_those_of_characters(name):
    group, other = parse(name), abelian.parse(name)
    assert (
        (group.table == other.add).all() and (group.inverse == other.negative).all() and str(group) == str(other) and group.abelian
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Z23", "23"),
        ("Z2xZ4", "2x4"),
        ("S3xZ4", "S3x4"),
        ("F8:g3g5", "F8:4"),
        ("F8:g11", "F8:g3"),
        ("F24:g11g5g7", "F24:g5g7"),
        ("F7:g2", "F7:3"),
    ],
)
def test_names_of_one_construction_give_one_group(given, name):
    assert parse(given) == parse(name) and parse(given).name == name and hash(parse(given)) == hash(parse(name))


def test_tables_are_made_once():
    assert parse("S4") is parse("S4") is groups.symmetric(4) and parse("3xS3") is parse("Z3xS3")


GRAMMAR = [
    "",
    "x",
    "2x",
    "x2",
    "foo",
    "s3",
    "S",
    "S3 x 2",
    "²",
    "-5",
    "2.5",
    "SL3:2",
    "SL2",
    "F7",
    "F7:",
    "F8:3g",
    "Z",
    "9" * 5000,
    "GL2:3",
    "2*4",
]


@pytest.mark.parametrize("name", GRAMMAR)
def test_names_outside_of_the_grammar_are_refused_in_one_sentence(name):
    with pytest.raises(UsageError, match=r"is not allowed: a group is named by factors joined with x, .*S4, A5, D5.*SL2:3, PSL2:7"):
        parse(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1", "a cyclic group has at least 2 elements"),
        ("2xZ0", "a cyclic group has at least 2 elements"),
        ("S1", "S permutes 2 to 6 things"),
        ("S7", "S permutes 2 to 6 things"),
        ("A2", "A permutes 3 to 6 things"),
        ("A999999", "A permutes 3 to 6 things"),
        ("D2", "at least 3 corners"),
        ("Q4", "order 4n with n at least 2"),
        ("Q10", "order 4n with n at least 2"),
        ("F1:1", "modulus of at least 2"),
        ("F7:0", "at least 1 multiplier"),
        ("F7:4", "the units mod 7 have no single subgroup of order 4"),
        ("F8:2", "the units mod 8 have no single subgroup of order 2"),
        ("F15:2", "the units mod 15 have no single subgroup of order 2"),
        ("F8:g6", "no factor in common with 8"),
        ("H1", "modulus of at least 2"),
        ("SL2:4", "prime modulus"),
        ("PSL2:1", "prime modulus"),
        ("1025", "at most 1024 elements are allowed, got 1025"),
        ("33x32", "at most 1024 elements are allowed, got 1056"),
        ("D513", "got 1026"),
        ("Q1028", "got 1028"),
        ("F999983:2", "got 1999966"),
        ("F999983:g2", "got 999983"),
        ("F512:g3", "got 65536"),
        ("H11", "got 1331"),
        ("SL2:11", "got 1320"),
        ("PSL2:13", "got 1092"),
        ("S6x2", "got 1440"),
    ],
)
def test_parameters_that_make_no_group_or_too_large_a_one_are_refused(name, message):
    with pytest.raises(UsageError, match=message):
        parse(name)


def test_largest_groups_of_the_families():
    assert {name: parse(name).order for name in ("S6", "A6", "PSL2:11", "SL2:7", "H10")} == {
        "S6": math.factorial(6),
        "A6": 360,
        "PSL2:11": 660,
        "SL2:7": 336,
        "H10": 1000,
    }


@pytest.mark.parametrize(
    "build",
    [
        groups.cyclic,
        groups.symmetric,
        groups.alternating,
        groups.dihedral,
        groups.dicyclic,
        groups.heisenberg,
        groups.special_linear,
        groups.projective_linear,
    ],
)
def test_builders_take_whole_numbers_of_any_library_and_nothing_else(build):
    assert build(np.int64(3)) is build(3)
    for wrong in (3.0, True, "3", None, float("nan"), -1, 0, 10**18 + 9):  # the last is a prime
        with within(5), pytest.raises(UsageError, match="not allowed|too large"):
            build(wrong)


def test_affine_maps_take_whole_numbers():
    assert groups.affine(np.int64(7), 3) is groups.affine(7, 3)
    for wrong in (3.0, True, None, -3, 0, 10**20):
        with within(5), pytest.raises(UsageError, match="not allowed|too large"):
            groups.affine(7, wrong)
        with within(5), pytest.raises(UsageError, match="not allowed|too large"):
            groups.affine_generated(wrong, (3,))
    with pytest.raises(UsageError, match="generators=3.0 is not allowed"):
        groups.affine_generated(8, (3.0,))


@pytest.mark.parametrize("name", [5, None, b"S4", True])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(UsageError, match="is not allowed: a group is named by factors"):
        parse(name)
