"""Batched factorisations: NumPy's numbers, loops instead of waiting threads, and nobody who goes around them."""

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn
from jaxdyn import linalg, metrics
from jaxdyn.errors import UsageError

MANY = """
import jax, jax.numpy as jnp
from jaxdyn import linalg
x = jax.random.normal(jax.random.key(0), (12, 4, 40, 40))
many = jax.jit(lambda x: [linalg.solve(a @ jnp.swapaxes(a, 1, 2) + jnp.eye(40), a) for a in x])
for _ in range(10):
    jax.block_until_ready(many(x))
print("done")
"""


@pytest.fixture
def matrices():
    return np.random.default_rng(0).normal(size=(3, 2, 6, 4))


def test_symmetric_functions_are_numpys(matrices, x64):
    a = matrices @ np.swapaxes(matrices, -1, -2) + np.eye(6)
    values, vectors = linalg.eigh(jnp.asarray(a))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=1e-12)
    np.testing.assert_allclose(linalg.eigvalsh(jnp.asarray(a)), values, rtol=1e-12)
    np.testing.assert_allclose(vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2), a, atol=1e-12)
    np.testing.assert_allclose(linalg.inv(jnp.asarray(a)), np.linalg.inv(a), atol=1e-12)
    np.testing.assert_allclose(linalg.solve(jnp.asarray(a), jnp.asarray(matrices)), np.linalg.solve(a, matrices), atol=1e-12)
    vector = linalg.solve(jnp.asarray(a), jnp.asarray(matrices[..., 0]))
    np.testing.assert_allclose(vector, np.linalg.solve(a, matrices[..., :1])[..., 0], atol=1e-12)


def test_decompositions_are_numpys(matrices, x64):
    u, s, vt = linalg.svd(jnp.asarray(matrices))
    np.testing.assert_allclose(u * s[..., None, :] @ vt, matrices, atol=1e-12)
    np.testing.assert_allclose(linalg.singular_values(jnp.asarray(matrices)), np.linalg.svd(matrices)[1], rtol=1e-12)
    q, r = linalg.qr(jnp.asarray(matrices))
    np.testing.assert_allclose(q @ r, matrices, atol=1e-12)
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(4), (3, 2, 4, 4)), atol=1e-12)
    solution = linalg.lstsq(jnp.asarray(matrices[0, 0]), jnp.ones((6, 1)), 1e-9)
    np.testing.assert_allclose(solution, np.linalg.lstsq(matrices[0, 0], np.ones((6, 1)), 1e-9)[0], atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(-600, 600))
def test_a_power_of_two_scales_every_factorisation(seed, power):
    """Exactly so, even where squares of the numbers would overflow or vanish."""
    with jax.enable_x64(True):
        a = np.random.default_rng(seed).normal(size=(2, 5, 5))
        scaled = np.ldexp(a, power)
        plain, large = (linalg.singular_values(jnp.asarray(x)) for x in (a, scaled))
        np.testing.assert_allclose(np.ldexp(large, -power), plain, rtol=1e-12)
        np.testing.assert_allclose(linalg.inv(jnp.asarray(scaled)) * 2.0**power, linalg.inv(jnp.asarray(a)), rtol=1e-9)
        b = a @ np.swapaxes(a, -1, -2)
        np.testing.assert_allclose(
            np.ldexp(linalg.eigvalsh(jnp.asarray(np.ldexp(b, power))), -power), linalg.eigvalsh(jnp.asarray(b)), atol=1e-12
        )
        q, r = linalg.qr(jnp.asarray(scaled))
        np.testing.assert_allclose(q @ np.ldexp(r, -power), a, atol=1e-12)
        np.testing.assert_allclose(metrics.stable_rank(jnp.asarray(scaled)), metrics.stable_rank(jnp.asarray(a)), rtol=1e-12)
        one, two = jnp.asarray(scaled), jnp.asarray(np.ldexp(a + 0.25, power))
        correlation = metrics.normalized_correlation(jnp.asarray(a), jnp.asarray(a + np.eye(5)))
        other = metrics.normalized_correlation(one, jnp.asarray(np.ldexp(a + np.eye(5), power)))
        np.testing.assert_allclose(other, correlation, rtol=1e-12)
        error = metrics.relative_norm_error(jnp.asarray(a), jnp.asarray(a + 0.25))
        np.testing.assert_allclose(metrics.relative_norm_error(one, two), error, rtol=1e-12)


def test_vmap_is_the_loop(matrices, x64):
    x = jnp.asarray(matrices[:, 0])
    together = jax.jit(jax.vmap(linalg.singular_values))(x)
    np.testing.assert_array_equal(together, jnp.stack([linalg.singular_values(a) for a in x]))


@pytest.mark.slow
def test_a_dozen_batches_in_one_program_come_to_an_end():
    ended = subprocess.run([sys.executable, "-c", MANY], capture_output=True, encoding="utf-8", timeout=120, check=True)
    assert ended.stdout.strip() == "done"


def test_nothing_else_factorises_matrices_in_a_program():
    fault = re.compile(r"jnp\.linalg\.(eig|svd|qr|solve|inv|lstsq|pinv|cholesky)|jax\.scipy\.linalg|lax\.linalg")
    package = Path(jaxdyn.__file__).parent
    files = [p for p in package.rglob("*.py") if p.name != "linalg.py"]
    assert [str(p.relative_to(package)) for p in files if fault.search(p.read_text(encoding="utf-8"))] == []


@pytest.mark.thinned
@pytest.mark.parametrize("shape", [(5,), (7, 5), (2, 3, 5)])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_dense_is_the_product_and_has_its_gradients(x64, shape, dtype):
    x, w, g = (
        jax.random.normal(jax.random.key(i), s, "float64").astype(dtype) for i, s in enumerate((shape, (5, 4), (*shape[:-1], 4)))
    )
    out, back = jax.vjp(linalg.dense, x, w)
    of_x, of_w = back(g)
    assert out.dtype == of_x.dtype == of_w.dtype == dtype
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == "float64" else {"rtol": 0.02, "atol": 0.05}
    numbers = [np.asarray(a, np.float64) for a in (x, w, g)]
    np.testing.assert_allclose(np.asarray(out, np.float64), numbers[0] @ numbers[1], **close)
    np.testing.assert_allclose(np.asarray(of_x, np.float64), numbers[2] @ numbers[1].T, **close)
    np.testing.assert_allclose(np.asarray(of_w, np.float64), numbers[0].reshape(-1, 5).T @ numbers[2].reshape(-1, 4), **close)


@pytest.mark.parametrize("size", [(1024, 256), (1026, 256), (1025, 257), (5, 3)])  # in four parts, in two, whole, and small
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_with_one_vector_are_products(x64, size, dtype):
    x, w = (np.random.default_rng(i).normal(size=s) for i, s in enumerate([size[:1], size]))
    x, w = x.astype(dtype), w.astype(dtype)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    for ours in (jax.jit(linalg.vector_matrix)(x, jnp.asarray(w)), jax.jit(linalg.matrix_vector)(jnp.asarray(w.T), x)):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, exact, atol=size[0] * np.finfo(dtype).eps * 4)


@pytest.mark.slow
def test_dense_for_many_weights_and_twice_differentiated(x64):
    x, w = jax.random.normal(jax.random.key(0), (3, 6, 5)), jax.random.normal(jax.random.key(1), (3, 5, 4))

    def loss(product, x, w):
        return jnp.sum(jnp.tanh(product(x, w)) ** 3)

    ours, plain = (jax.vmap(jax.grad(lambda x, w, p=p: loss(p, x, w), argnums=(0, 1)))(x, w) for p in (linalg.dense, jnp.matmul))
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    size = lambda p: lambda w: jnp.sum(jax.grad(lambda w: loss(p, x[0], w))(w) ** 2)  # noqa: E731
    np.testing.assert_allclose(jax.grad(size(linalg.dense))(w[0]), jax.grad(size(jnp.matmul))(w[0]), rtol=1e-11, atol=1e-13)


SQUARE = ("eigh", "eigvalsh", "inv", "solve")
ONE = {  # each function of a matrix alone
    "eigh": linalg.eigh,
    "eigvalsh": linalg.eigvalsh,
    "svd": linalg.svd,
    "singular_values": linalg.singular_values,
    "qr": linalg.qr,
    "inv": linalg.inv,
    "solve": lambda a: linalg.solve(a, a),
    "lstsq": lambda a: linalg.lstsq(a, a, 1e-6),
}
PROGRAMS = {name: jax.jit(f) for name, f in ONE.items()}
SOME = settings(deadline=None, max_examples=40, derandomize=True)


@SOME
@given(
    st.sampled_from(["eigh", "eigvalsh", "svd", "singular_values", "lstsq"]),
    st.integers(0, 8),
    st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_a_matrix_that_is_not_finite_has_no_numbers(name, place, spoiled):
    """LAPACK leaves some of them: eigenvalues NaN and 1 of a matrix with a NaN, a least-squares solution of zeros with infinity."""
    a = np.eye(3, dtype=np.float32)
    a[place // 3, place % 3] = spoiled
    both = PROGRAMS[name](np.stack([a, np.eye(3, dtype=np.float32)]))
    for x in jax.tree.leaves(both):
        assert np.isnan(x[0]).all() and np.isfinite(x[1]).all()


@pytest.mark.parametrize("name", ["qr", "inv", "solve"])
def test_nan_is_not_lost(name):
    for place in range(9):
        a = np.eye(3, dtype=np.float32)
        a[place // 3, place % 3] = np.nan
        assert np.isnan(jax.tree.leaves(PROGRAMS[name](a))[-1]).any()


@pytest.mark.thinned
@pytest.mark.parametrize("name", ONE)
def test_whole_numbers_and_narrow_floats_are_calculated_with(name):
    """As float32; the results of bfloat16 and float16 are rounded to them."""
    a = np.asarray([[4, 1, 0], [1, 3, 1], [0, 1, 2]])
    exact = PROGRAMS[name](a.astype(np.float32))
    for dtype in ("int32", "bfloat16", "float16"):
        found = PROGRAMS[name](jnp.asarray(a, dtype))
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True):
            assert x.dtype == ("float32" if dtype == "int32" else dtype)
            np.testing.assert_array_equal(np.asarray(x, np.float32), np.asarray(y.astype(x.dtype), np.float32))


@pytest.mark.parametrize("name", ONE)
def test_shapes_that_are_no_matrices_are_refused(name):
    for a in (np.float32(1), np.ones(3), *((np.ones((2, 3)), np.ones((5, 3, 2))) if name in SQUARE else ())):
        with pytest.raises(UsageError, match="^a=.* is not allowed: it is a (square )?matrix, or an array of them$"):
            ONE[name](a)
    empty = PROGRAMS[name](np.ones((0, 0), np.float32))
    assert sum(x.size for x in jax.tree.leaves(empty)) == 0


@pytest.mark.parametrize("call", [linalg.solve, lambda a, b: linalg.lstsq(a, b, 0.0)])
def test_right_sides_that_are_not_one_for_each_matrix_are_refused(call):
    for a, b in (((2, 2), (3,)), ((2, 2), ()), ((2, 2), (3, 2, 1)), ((3, 2, 2), (2, 1)), ((3, 2, 2), (2, 2)), ((3, 2, 2), (4, 2))):
        with pytest.raises(UsageError, match=r"^b=.* is not allowed with a=.*: it has a vector or a matrix of 2 rows for each$"):
            call(np.ones(a), np.ones(b))


@pytest.mark.parametrize("rcond", [np.nan, -1.0, 2, True, None, "1"])
def test_a_share_of_the_largest_singular_value_is_between_0_and_1(rcond):
    with pytest.raises(UsageError, match=f"rcond={rcond} is not allowed: rcond is .*at least 0 and at most 1"):
        linalg.lstsq(np.eye(2), np.eye(2), rcond)


def test_a_layer_is_a_matrix_of_floats():
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    for a, b in ((x, w.T), (x, w[0]), (x, w[None]), (x > 0, w > 0), (x.astype(np.int8), w.astype(np.int8)), (np.float32(1), w)):
        with pytest.raises(UsageError, match="are not allowed: w is a matrix of floats with a row for each entry of x's last axis"):
            linalg.dense(a, b)
    np.testing.assert_array_equal(linalg.dense(x.astype(np.int8), w), x @ w)


def test_multiplications_of_products_loops_and_convolutions():
    """By hand: [2, 3] @ [3, 4]; five times [3, 3] @ [3]; 6 places of a kernel of 3 numbers, 2 channels in, 4 out, in two groups."""
    count = lambda f, *sizes: linalg.multiplications(jax.make_jaxpr(f)(*map(jnp.zeros, sizes)).jaxpr)  # noqa: E731
    assert count(lambda a, b: jnp.tanh(a @ b), (2, 3), (3, 4)) == 24
    assert count(lambda a, v: jax.lax.scan(lambda v, _: (a @ v, None), v, None, length=5)[0], (3, 3), (3,)) == 45
    assert count(jax.jit(linalg.dense), (2, 3), (3, 4)) == 24
    convolved = lambda x, w, groups: jax.lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=groups)  # noqa: E731
    assert count(lambda x, w: convolved(x, w, 1), (1, 2, 8), (4, 2, 3)) == 6 * 3 * 2 * 4
    assert count(lambda x, w: convolved(x, w, 2), (1, 2, 8), (4, 1, 3)) == 6 * 3 * 4
