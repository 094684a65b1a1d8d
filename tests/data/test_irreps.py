"""Irreps against known character tables and the identities of representation theory; the transform against sums written out."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import abelian, irreps
from jaxdyn.data.cayley import Group
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import blocks, decompose, energies, flatten, inverse, transform

# name: degrees, and how many irreps are of real, complex and quaternionic type
KNOWN = {
    "7": ([1] * 7, (1, 6, 0)),
    "8": ([1] * 8, (2, 6, 0)),
    "15": ([1] * 15, (1, 14, 0)),
    "2x2x2": ([1] * 8, (8, 0, 0)),
    "S3": ([1, 1, 2], (3, 0, 0)),
    "D4": ([1, 1, 1, 1, 2], (5, 0, 0)),
    "D5": ([1, 1, 2, 2], (4, 0, 0)),
    "Q8": ([1, 1, 1, 1, 2], (4, 0, 1)),
    "Q12": ([1, 1, 1, 1, 2, 2], (3, 2, 1)),
    "A4": ([1, 1, 1, 3], (2, 2, 0)),
    "S4": ([1, 1, 2, 3, 3], (5, 0, 0)),
    "H3": ([1] * 9 + [3, 3], (1, 10, 0)),
    "SL2:3": ([1, 1, 1, 2, 2, 2, 3], (2, 4, 1)),
    "A5": ([1, 3, 3, 4, 5], (5, 0, 0)),
    "F7:3": ([1, 1, 1, 3, 3], (1, 4, 0)),
    "F5:4": ([1, 1, 1, 1, 4], (3, 2, 0)),
    "3xS3": ([1] * 6 + [2, 2, 2], (3, 6, 0)),
    "S5": ([1, 1, 4, 4, 5, 5, 6], (7, 0, 0)),
    "SL2:5": ([1, 2, 2, 3, 3, 4, 4, 5, 6], (5, 0, 4)),
    "PSL2:7": ([1, 3, 3, 6, 7, 8], (4, 2, 0)),
    "S3xQ8": ([1] * 8 + [2] * 6 + [4], (12, 0, 3)),
}
SMALL = ["7", "8", "2x2x2", "S3", "Q8", "A4", "S4", "F7:3", "SL2:3", "3xS3"]
W, R5, R7 = np.exp(2j * np.pi / 3), 5**0.5, 1j * 7**0.5
GOLD, SILVER = (1 + R5) / 2, (1 - R5) / 2
B, D = (-1 + R7) / 2, (-1 - R7) / 2
# name: class sizes, rows of the character table in the same order of classes
TABLES = {
    "S3": ([1, 3, 2], [[1, 1, 1], [1, -1, 1], [2, 0, -1]]),
    "S4": ([1, 6, 3, 8, 6], [[1, 1, 1, 1, 1], [1, -1, 1, 1, -1], [2, 0, 2, -1, 0], [3, 1, -1, 0, -1], [3, -1, -1, 0, 1]]),
    "Q8": ([1, 1, 2, 2, 2], [[1, 1, 1, 1, 1], [1, 1, 1, -1, -1], [1, 1, -1, 1, -1], [1, 1, -1, -1, 1], [2, -2, 0, 0, 0]]),
    "D4": ([1, 1, 2, 2, 2], [[1, 1, 1, 1, 1], [1, 1, 1, -1, -1], [1, 1, -1, 1, -1], [1, 1, -1, -1, 1], [2, -2, 0, 0, 0]]),
    "A4": ([1, 3, 4, 4], [[1, 1, 1, 1], [1, 1, W, W**2], [1, 1, W**2, W], [3, -1, 0, 0]]),
    "A5": ([1, 15, 20, 12, 12], [[1] * 5, [3, -1, 0, GOLD, SILVER], [3, -1, 0, SILVER, GOLD], [4, 0, 1, -1, -1], [5, 1, -1, 0, 0]]),
    "F7:3": ([1, 3, 3, 7, 7], [[1] * 5, [1, 1, 1, W, W**2], [1, 1, 1, W**2, W], [3, B, D, 0, 0], [3, D, B, 0, 0]]),
    "PSL2:7": (
        [1, 21, 42, 56, 24, 24],
        [[1] * 6, [3, -1, 1, 0, B, D], [3, -1, 1, 0, D, B], [6, 2, 0, 0, -1, -1], [7, -1, -1, 1, 0, 0], [8, 0, 0, -1, 1, 1]],
    ),
}


def same_rows(first: np.ndarray, second: np.ndarray, tolerance: float = 1e-12) -> bool:
    """Whether two lists of different rows hold the same ones in any order."""
    equal = np.abs(first[:, None] - second[None]).max(-1) < tolerance
    return bool((equal.sum(0) == 1).all() and (equal.sum(1) == 1).all())


@pytest.mark.parametrize("name", TABLES)
def test_known_character_tables_up_to_the_order_of_classes_and_irreps(name):
    sizes, rows = np.array(TABLES[name][0]), np.array(TABLES[name][1], complex)
    result = decompose(parse(name))
    orders = [list(p) for p in itertools.permutations(range(len(sizes))) if (sizes[list(p)] == result.group.class_sizes).all()]
    assert any(same_rows(result.table, rows[:, p]) for p in orders)
    rows[-1, -1] += 0.1
    assert not any(same_rows(result.table, rows[:, p]) for p in orders)


@pytest.mark.parametrize("name", ["2", "7", "8", "15", "2x2x2", "4x6", "3x2x5", "101"])
def test_abelian_characters_are_those_of_the_abelian_module(name):
    result = decompose(parse(name)).characters
    assert same_rows(result, abelian.parse(name).characters, 1e-14)
    if name == "7":  # the documented order: by frequency, conjugates side by side
        assert np.allclose(result, abelian.parse(name).characters[[0, 1, 6, 2, 5, 3, 4]], rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 9, 10])
def test_characters_of_dihedral_groups(n):
    j, i = np.divmod(np.arange(2 * n), n)
    rows = [np.ones(2 * n), (-1.0) ** j] + ([] if n % 2 else [(-1.0) ** i, (-1.0) ** (i + j)])
    rows += [np.where(j == 0, 2 * np.cos(2 * np.pi * k * i / n), 0) for k in range(1, (n + 1) // 2)]
    result = decompose(parse(f"D{n}"))
    assert same_rows(result.characters, np.array(rows, complex), 1e-14) and not result.characters.imag.any()


@pytest.mark.parametrize(("first", "second"), [("S3", "Q8"), ("3", "S3"), ("A4", "D5")])
def test_characters_of_products_are_products_of_characters(first, second):
    product = np.kron(decompose(parse(first)).characters, decompose(parse(second)).characters)
    assert same_rows(decompose(parse(f"{first}x{second}")).characters, product, 1e-13)


@pytest.mark.parametrize("name", KNOWN)
def test_degrees_types_and_orthogonality(name):
    group, result = parse(name), decompose(parse(name))
    degrees, types = KNOWN[name]
    assert result.degrees.tolist() == degrees and tuple((result.indicators == t).sum() for t in (1, 0, -1)) == types
    assert len(result) == len(group.class_sizes) and (result.degrees**2).sum() == group.order
    m, table, sizes = group.order, result.table, group.class_sizes
    assert np.abs((table * sizes) @ table.conj().T - m * np.eye(len(table))).max() < 1e-12 * m
    assert np.abs(table.conj().T @ table - np.diag(m / sizes)).max() < 1e-12 * m
    assert (table[0] == 1).all() and (table[:, 0] == result.degrees).all()
    squares = [np.mean([chi[group.table[g, g]] for g in range(m)]) for chi in result.characters]
    assert np.abs(squares - result.indicators).max() < 1e-12


@pytest.mark.parametrize("name", KNOWN)
def test_matrices_are_unitary_irreps_of_their_characters(name):
    group, result = parse(name), decompose(parse(name))
    for k, c in enumerate(result.matrices):
        d = result.degrees[k]
        assert c.shape == (group.order, d, d) and np.isrealobj(c) == (result.indicators[k] == 1)
        products = c[group.table[:, :40]] - np.einsum("gab,hbc->ghac", c, c[:40])
        assert np.abs(products).max() < 1e-13
        assert np.abs(c @ c.conj().swapaxes(1, 2) - np.eye(d)).max() < 1e-13
        assert np.abs(np.trace(c, axis1=1, axis2=2) - result.characters[k]).max() < 1e-13
    coefficients = np.concatenate([c.reshape(group.order, -1) * len(c[0]) ** 0.5 for c in result.matrices], 1)
    assert np.abs(coefficients.conj().T @ coefficients / group.order - np.eye(group.order)).max() < 1e-13


@pytest.mark.parametrize("name", KNOWN)
def test_conjugates_are_neighbours_and_entry_by_entry(name):
    result = decompose(parse(name))
    assert (result.conjugate[result.conjugate] == np.arange(len(result))).all()
    for k, c in enumerate(result.conjugate):
        assert (result.table[c] == result.table[k].conj()).all() and (result.indicators[k] == 0) == (c != k) and abs(c - k) <= 1
        if c != k:
            assert (result.matrices[c] == result.matrices[k].conj()).all()
    assert sorted(sum(result.merged, ())) == list(range(len(result)))
    assert all(result.conjugate[part[0]] == part[-1] for part in result.merged)


@pytest.mark.parametrize("name", SMALL)
def test_projectors(name):
    group, result = parse(name), decompose(parse(name))
    m = group.order
    regular = np.zeros((m, m, m))
    for g, j in itertools.product(range(m), repeat=2):
        regular[g, group.table[g, j], j] = 1
    total = np.zeros((m, m), complex)
    for k, d in enumerate(result.degrees):
        p = result.projector(k)
        assert np.allclose(p, d / m * np.einsum("g,gij->ij", result.characters[k].conj(), regular), rtol=0, atol=1e-14)
        assert np.allclose(p @ p, p, rtol=0, atol=1e-13) and np.allclose(p, p.conj().T, rtol=0, atol=1e-14)
        assert round(np.trace(p).real) == np.linalg.matrix_rank(p) == d * d
        assert np.abs(p @ regular - regular @ p).max() < 1e-13
        rows = result.fourier[result.owner == k]  # the transform's block k holds the part of u in the subspace of the conjugate
        assert np.allclose(rows.conj().T @ rows, result.projector(result.conjugate[k]), rtol=0, atol=1e-13)
        total += p
    assert np.allclose(total, np.eye(m), rtol=0, atol=1e-13)


@given(name=st.sampled_from(["6", "S3", "Q8", "A4", "SL2:3"]), seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_any_numbering_of_the_elements_gives_the_same_characters(name, seed):
    group = parse(name)
    permutation = np.random.default_rng(seed).permutation(group.order)
    back = np.argsort(permutation)
    moved = decompose.__wrapped__(Group(f"{name} renumbered", permutation[group.table[back][:, back]]))
    assert same_rows(moved.characters[:, permutation], decompose(group).characters, 1e-13)
    assert (moved.degrees == decompose(group).degrees).all()
    assert sorted(moved.indicators) == sorted(decompose(group).indicators)


def random_functions(name: str, seed: int, count: int, real: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((count, parse(name).order))
    return u if real else u + 1j * rng.standard_normal(u.shape)


@functools.partial(jax.jit, static_argnums=1)
def everything(u, result):
    z = transform(u, result)
    return z, blocks(z, result), energies(z, result), inverse(flatten(blocks(z, result)), result)


any_group = st.sampled_from(SMALL)
any_seed = st.integers(0, 10**6)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@given(name=any_group, seed=any_seed)
@settings(deadline=None, max_examples=25)
def test_transform_is_the_sum_written_out_unitary_and_inverted(name, seed):
    result, u = decompose(parse(name)), random_functions(name, seed, 2)
    z, parts, energy, back = everything(u, result)
    for k, block in enumerate(parts):
        scale = (result.degrees[k] / result.group.order) ** 0.5
        assert np.allclose(block, scale * np.einsum("ng,gab->nab", u, result.matrices[k].conj()), rtol=0, atol=1e-12)
        assert np.allclose(energy[:, k], np.linalg.norm(block, axis=(1, 2)) ** 2, rtol=1e-12)
        part = u @ result.projector(result.conjugate[k]).T
        assert np.allclose(energy[:, k], np.linalg.norm(part, axis=1) ** 2, rtol=0, atol=1e-12)
    assert np.allclose(energy.sum(1), np.linalg.norm(u, axis=1) ** 2, rtol=1e-12)
    assert np.allclose(back, u, rtol=0, atol=1e-12)
    assert (np.concatenate([block.reshape(2, -1) for block in parts], 1) == z).all()


@pytest.mark.usefixtures("x64")
@given(name=any_group, seed=any_seed)
@settings(deadline=None, max_examples=25)
def test_convolution_and_translation(name, seed):
    group, result = parse(name), decompose(parse(name))
    u, v = random_functions(name, seed, 2)
    h = seed % group.order
    convolution = sum(u[g] * v[group.table[group.inverse[g]]] for g in range(group.order))
    moved = u[group.table[group.inverse[h]]]  # (R_h u)(g) = u(h^-1 g)
    uh, vh, ch, mh = (everything(np.stack([f, f]), result)[1] for f in (u, v, convolution, moved))
    uh, vh, ch, mh = ([block[0] for block in parts] for parts in (uh, vh, ch, mh))
    wrong = 0.0
    for k, d in enumerate(result.degrees):
        scale = (group.order / d) ** 0.5
        assert np.allclose(ch[k], scale * uh[k] @ vh[k], rtol=0, atol=1e-11)
        assert np.allclose(mh[k], result.matrices[k][h].conj() @ uh[k], rtol=0, atol=1e-12)
        wrong = max(wrong, float(np.abs(ch[k] - scale * vh[k] @ uh[k]).max()))
    assert group.abelian or wrong > 1e-3


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SMALL)
def test_real_functions_have_conjugate_blocks_and_come_back_real(name):
    result, u = decompose(parse(name)), random_functions(name, 3, 1, real=True)[0]
    _, parts, _, back = everything(u, result)
    for k, c in enumerate(result.conjugate):
        if result.indicators[k] >= 0:
            assert np.allclose(parts[c], np.conj(parts[k]), rtol=0, atol=1e-13)
    assert np.abs(np.imag(back)).max() < 1e-13


@pytest.mark.parametrize(("dtype", "out"), [("float32", "complex64"), ("float64", "complex128"), ("complex64", "complex64")])
@pytest.mark.usefixtures("x64")
def test_precision_is_that_of_the_function(dtype, out):
    result = decompose(parse("S4"))
    u = jnp.ones(24, dtype)
    z = transform(u, result)
    assert z.dtype == inverse(z, result).dtype == out
    assert energies(z, result).dtype == {"complex64": "float32", "complex128": "float64"}[out]
    assert np.allclose(inverse(z, result), u, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("x64")
def test_compiled_vectorised_and_traced_once_for_equal_groups():
    u = jnp.asarray(random_functions("A4", 0, 5))

    @functools.partial(jax.jit, static_argnums=1)
    @chex.assert_max_traces(n=1)
    def there_and_back(u, result):
        z = transform(u, result)
        return z, energies(z, result), inverse(flatten(blocks(z, result)), result)

    result = decompose(parse("A4"))
    again = decompose.__wrapped__(parse("A4"))
    assert again is not result and again == result and hash(again) == hash(result)
    assert result != decompose(parse("D6")) and result != "A4"
    z, energy, back = there_and_back(u, result)
    assert np.allclose(z, transform(u, result), rtol=0, atol=1e-12) and np.allclose(back, u, rtol=0, atol=1e-12)
    assert np.allclose(energy, jax.vmap(lambda u: energies(transform(u, result), result))(u), rtol=1e-12)
    assert (there_and_back(u, again)[0] == z).all()


def test_same_at_every_call():
    first, second = decompose(parse("SL2:3")), decompose.__wrapped__(parse("SL2:3"))
    assert decompose(parse("SL2:3")) is first and (first.table == second.table).all()
    assert all((a == b).all() for a, b in zip(first.matrices, second.matrices, strict=True))


@pytest.mark.parametrize("stage", ["_isotypic", "_characters", "_matrices"])
def test_a_failed_draw_is_drawn_again(stage, monkeypatch):
    original, calls = getattr(irreps, stage), []

    def fails_once(*args):
        calls.append(stage)
        return None if len(calls) == 1 else original(*args)

    monkeypatch.setattr(irreps, stage, fails_once)
    result = decompose.__wrapped__(parse("S4"))
    assert len(calls) == 2 and (result.table == decompose(parse("S4")).table).all()


@pytest.mark.parametrize(("limit", "value"), [("_SEPARATION", 2.0), ("_WHOLE", 0.0), ("_ACCURACY", 0.0)])
def test_irreps_that_are_never_told_apart_are_an_error(limit, value, monkeypatch):
    monkeypatch.setattr(irreps, limit, value)
    with pytest.raises(RuntimeError, match=r"irreps of the group S4 \(24 elements\) could not be separated in 20 random draws"):
        decompose.__wrapped__(parse("S4"))


def test_group_of_one_element():
    result = decompose(Group("one", np.array([[0]])))
    assert result.table.tolist() == [[1]] and result.fourier.tolist() == [[1]] and result.merged == ((0,),)
