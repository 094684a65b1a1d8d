"""metrics.py against scipy and numpy, and by the properties that define each number."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import metrics
from jaxdyn.errors import UsageError

SEEDS = st.integers(0, 2**32 - 1)
SOME = settings(deadline=None, max_examples=15)
entropy, normalized_correlation = (jax.jit(f, static_argnames="axis") for f in (metrics.entropy, metrics.normalized_correlation))
stable_rank, relative_norm_error = map(jax.jit, (metrics.stable_rank, metrics.relative_norm_error))


@pytest.fixture(autouse=True, scope="module")
def wide():
    """Float64 throughout (module scope: hypothesis refuses fixtures that it cannot renew for each example)."""
    with jax.enable_x64(True):
        yield


@SOME
@given(SEEDS, st.sampled_from([2, 5]))
def test_entropy(seed, n):
    """Scipy's entropy; between 0 and ln n, both reached; p ln p is 0 at 0, on any axis."""
    p = np.random.default_rng(seed).dirichlet(np.ones(n), size=3)
    p[0] = np.eye(n)[0]
    h = np.asarray(entropy(jnp.asarray(p)))
    np.testing.assert_allclose(h, scipy.stats.entropy(p, axis=-1), atol=1e-14)
    assert h[0] == 0 and np.all(h >= 0) and np.all(h <= np.log(n) + 1e-14)
    np.testing.assert_array_equal(entropy(jnp.asarray(p.T), axis=0), h)
    assert float(entropy(jnp.full(n, 1 / n))) == pytest.approx(np.log(n), rel=1e-14)


def test_entropy_of_what_is_no_distribution():
    assert np.isneginf(entropy(jnp.array([1.5, -0.5])))
    assert np.isnan(entropy(jnp.array([0.5, np.nan])))


@SOME
@given(SEEDS, st.sampled_from([(3, 3), (4, 2)]), st.floats(1e-8, 1e8))
def test_stable_rank(seed, shape, scale):
    """By numpy's norms; between 1 and the rank; unchanged by scale and by transposition."""
    m = np.random.default_rng(seed).normal(size=(2, *shape)) * scale
    r = np.asarray(stable_rank(jnp.asarray(m)))
    expected = [np.linalg.norm(a) ** 2 / np.linalg.norm(a, 2) ** 2 for a in m]
    np.testing.assert_allclose(r, expected, rtol=1e-12)
    assert np.all(r >= 1) and np.all(r <= min(shape) + 1e-12)
    np.testing.assert_allclose(stable_rank(jnp.asarray(m).swapaxes(-1, -2)), r, rtol=1e-12)


def test_stable_rank_at_its_ends():
    assert float(stable_rank(jnp.eye(4))) == pytest.approx(4)
    assert float(stable_rank(jnp.outer(jnp.arange(1.0, 4.0), jnp.ones(2)))) == pytest.approx(1)
    assert float(stable_rank(jnp.eye(3) * 1e-200)) == pytest.approx(3)  # its square would underflow
    assert np.isnan(stable_rank(jnp.zeros((2, 2))))


@SOME
@given(SEEDS, st.floats(0.1, 10), st.floats(-10, 10))
def test_normalized_correlation(seed, gain, offset):
    """Numpy's Pearson correlation; 1 under gain and offset, -1 under the opposite; broadcasts, any axis."""
    a, b = np.random.default_rng(seed).normal(size=(2, 3, 7))
    c = np.asarray(normalized_correlation(jnp.asarray(a), jnp.asarray(b)))
    np.testing.assert_allclose(c, [np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)], atol=1e-13)
    np.testing.assert_allclose(normalized_correlation(jnp.asarray(a), jnp.asarray(gain * a + offset)), 1, atol=1e-10)
    np.testing.assert_allclose(normalized_correlation(jnp.asarray(a), jnp.asarray(-gain * a)), -1, atol=1e-10)
    np.testing.assert_allclose(normalized_correlation(jnp.asarray(a.T), jnp.asarray(b.T), axis=0), c, atol=1e-14)
    one = normalized_correlation(jnp.asarray(a), jnp.asarray(b[0]))
    np.testing.assert_allclose(one[0], c[0], atol=1e-14)


def test_correlation_with_a_constant_is_undefined():
    assert np.isnan(normalized_correlation(jnp.ones(4), jnp.arange(4.0)))


@SOME
@given(SEEDS)
def test_relative_norm_error(seed):
    """All leaves are one vector; the second argument is the reference."""
    a, b = np.random.default_rng(seed).normal(size=(2, 5))
    tree = lambda v: {"x": jnp.asarray(v[:2]), "y": (jnp.asarray(v[2:]),)}  # noqa: E731
    error = float(relative_norm_error(tree(a), tree(b)))
    assert error == pytest.approx(np.linalg.norm(a - b) / np.linalg.norm(b), rel=1e-13)
    assert float(relative_norm_error(tree(b), tree(b))) == 0
    assert float(relative_norm_error(tree(1.1 * b), tree(b))) == pytest.approx(0.1, rel=1e-12)


def test_top_eigenvalue_needs_the_shift():
    """Numpy's eigvalsh on a matrix whose most negative eigenvalue is the larger: without a shift the iteration goes there."""
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    h = jnp.asarray(q @ np.diag([2.0, 1.0, -1.0, -3.0]) @ q.T)
    top = jax.jit(lambda iters, shift: metrics.top_eigenvalue(lambda v: h @ v, jnp.ones(4), iters, shift))
    # error (gap ratio)^(2 iters) times the spread: ((1 + 3)/(2 + 3))^200 = 4e-20
    assert float(top(100, 3.0)) == pytest.approx(2.0, abs=1e-12)
    assert float(top(100, 0.0)) == pytest.approx(-3.0, abs=1e-12)
    assert abs(float(top(3, 3.0)) - 2.0) > 1e-3  # traced number of iterations


def test_top_eigenvalue_of_a_loss():
    """The sharpness of a loss on a tree of parameters by Hessian-vector products, against the dense Hessian."""
    params = {"u": jnp.array([1.0, 0.5]), "v": jnp.array([0.3])}
    loss = lambda p: jnp.sum(jnp.cosh(p["u"])) * jnp.square(p["v"][0]) + jnp.sum(p["u"] ** 4)  # noqa: E731
    flat = jax.jit(jax.hessian(lambda x: loss({"u": x[:2], "v": x[2:]})))(jnp.array([1.0, 0.5, 0.3]))
    product = lambda t: jax.jvp(jax.grad(loss), (params,), (t,))[1]  # noqa: E731
    eigenvalue = jax.jit(lambda start: metrics.top_eigenvalue(product, start, 200, 1.0))(jax.tree.map(jnp.ones_like, params))
    assert float(eigenvalue) == pytest.approx(np.linalg.eigvalsh(flat)[-1], rel=1e-12)


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_stay_and_transforms_agree(dtype):
    """No metric widens float32; jit and vmap give the loop's numbers."""
    m = jnp.asarray(np.random.default_rng(0).uniform(0.1, 1, size=(3, 4, 4)), dtype)
    functions = [
        lambda a: metrics.entropy(a),
        lambda a: metrics.stable_rank(a),
        lambda a: metrics.normalized_correlation(a, a**2),
        lambda a: metrics.relative_norm_error(a, a**2),
        lambda a: metrics.top_eigenvalue(lambda v: (a + a.T) @ v, jnp.ones(4, dtype), 20, 0.5),
    ]
    batch = jax.jit(jax.vmap(lambda a: tuple(f(a) for f in functions)))(m)
    for f, together in zip(functions, batch, strict=True):
        assert together.dtype == dtype
        for a, value in zip(m, together, strict=True):
            np.testing.assert_allclose(jax.jit(f)(a), value, rtol=100 * np.finfo(dtype).eps)


@SOME
@given(SEEDS, st.integers(-40, 37), st.integers(-40, 37))
def test_sizes_at_the_ends_of_a_dtype_neither_overflow_nor_vanish(seed, one, two):
    """In float32, whose squares end at 1e38: as in float64, where the numbers are in the middle."""
    a, b = np.random.default_rng(seed).normal(size=(2, 5))
    low, high = jnp.asarray(10.0**one * a, "float32"), jnp.asarray(10.0**two * b, "float32")
    wide = [np.asarray(x, np.float64) for x in (low, high)]
    if min(one, two) > -36:  # smaller ones are flushed to zero
        np.testing.assert_allclose(normalized_correlation(low, high), np.corrcoef(*wide)[0, 1], atol=1e-5)
    if one == two and one > -36:
        expected = np.linalg.norm(wide[0] - wide[1]) / np.linalg.norm(wide[1])
        np.testing.assert_allclose(relative_norm_error(low, high), expected, rtol=1e-5)


@SOME
@given(st.floats(-1e3, 1e3), st.sampled_from([1, 2, 5, 9]), st.sampled_from(["float32", "float64"]))
def test_no_correlation_with_a_constant_whatever_its_rounding(value, n, dtype):
    other, constant = np.arange(float(n), dtype=dtype), np.full(n, value, dtype)
    for pair in ((constant, other), (other, constant)):
        assert np.isnan(normalized_correlation(*pair))


@pytest.mark.slow
def test_whole_numbers_and_truth_values_are_calculated_as_floats():
    a, b = np.asarray([3, 200, 7], np.uint8), np.asarray([5, 100, 9], np.uint8)
    wide = np.linalg.norm(a.astype(float) - b) / np.linalg.norm(b.astype(float))
    assert float(metrics.relative_norm_error(a, b)) == pytest.approx(wide, rel=1e-12)
    assert float(metrics.relative_norm_error({"x": np.asarray([True])}, {"x": np.asarray([True])})) == 0
    assert float(metrics.normalized_correlation(a, b)) == pytest.approx(np.corrcoef(a, b)[0, 1], rel=1e-12)
    assert float(metrics.entropy([False, True])) == 0 and float(metrics.stable_rank(np.eye(3, dtype=int))) == 3
    c = np.asarray([1 + 1j, 2.0]), np.asarray([1.0, 2j])
    assert float(metrics.relative_norm_error(*c)) == pytest.approx(np.linalg.norm(c[0] - c[1]) / np.linalg.norm(c[1]))


@pytest.mark.parametrize("spoiled", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_lost(spoiled):
    m = np.asarray([[1.0, spoiled], [2.0, 3.0]])
    assert np.isnan(metrics.stable_rank(m)) and np.isnan(metrics.normalized_correlation(m[0], m[1]))
    assert np.isnan(metrics.relative_norm_error(m[1], m[0])) and not np.isfinite(metrics.relative_norm_error(m[0], m[1]))
    assert not np.isfinite(metrics.entropy(m[0]))


ONES = np.ones(3)
REFUSED = {
    "p=float64[2,0] is not allowed: it has entries along axis -1": lambda: metrics.entropy(np.zeros((2, 0))),
    "p=0.5 is not allowed: it has entries along axis -1": lambda: metrics.entropy(0.5),
    "p=float64[3] is not allowed: it has entries along axis 1": lambda: metrics.entropy(ONES, axis=1),
    "p=complex128[1] is not allowed: it is real": lambda: metrics.entropy(np.asarray([1j])),
    "axis=True is not allowed: axis is a whole number": lambda: metrics.entropy(ONES, axis=True),
    "m=float64[0,3] is not allowed: a matrix has entries": lambda: metrics.stable_rank(np.zeros((0, 3))),
    "a=float64[3] is not allowed: it is a matrix, or an array of them": lambda: metrics.stable_rank(ONES),
    "a=complex128[3] is not allowed: it is real": lambda: metrics.normalized_correlation(1j * ONES, ONES),
    "a=float64[0] is not allowed: it has entries along axis -1": lambda: metrics.normalized_correlation(ONES[:0], ONES[:0]),
    "a=float64[3], b=float64[0] are not allowed: their shapes": lambda: metrics.normalized_correlation(ONES, ONES[:0]),
    "a=float64[3], b=float64[2] are not allowed: their shapes": lambda: metrics.normalized_correlation(ONES, ONES[:2]),
    "leaf by leaf, got leaves float64[3] and float64[3,1]": lambda: metrics.relative_norm_error(ONES, ONES[:, None]),
    "leaf by leaf, got PyTreeDef({'a': *})": lambda: metrics.relative_norm_error({"a": 1.0}, {"b": 1.0}),
    "two trees without a number": lambda: metrics.relative_norm_error({"a": ONES[:0]}, {"a": ONES[:0]}),
    "iters=0 is not allowed: iters is at least 1": lambda: metrics.top_eigenvalue(lambda v: v, ONES, 0),
    "iters=2.5 is not allowed: iters is a whole number": lambda: metrics.top_eigenvalue(lambda v: v, ONES, 2.5),
    "shift=nan is not allowed: shift is a finite number": lambda: metrics.top_eigenvalue(lambda v: v, ONES, 2, np.nan),
    "hvp= is not allowed": lambda: metrics.top_eigenvalue(lambda v: v[:2], ONES, 2),
    "hvp= is not allowed: it gives a tree like": lambda: metrics.top_eigenvalue(lambda v: {"v": v}, ONES, 2),
    "hvp=None is not allowed: it is a function of a tree": lambda: metrics.top_eigenvalue(None, ONES, 2),
    "v0=float64[0] is not allowed: a vector has entries": lambda: metrics.top_eigenvalue(lambda v: v, ONES[:0], 2),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_such_number_is_refused_in_one_sentence(words):
    with pytest.raises(UsageError) as error:
        REFUSED[words]()
    assert words in str(error.value) and "\n" not in str(error.value)


NO_NUMBERS = ["a", b"a", object(), np.array(["a"]), np.array("2020", "datetime64[D]"), np.array([{}]), 10**400, jax.random.key(0)]


@pytest.mark.parametrize("x", NO_NUMBERS, ids=lambda x: str(getattr(x, "dtype", type(x).__name__)))
def test_what_is_no_number_is_refused_by_every_metric(x):
    calls = {
        "p": lambda: metrics.entropy(x),
        "m": lambda: metrics.stable_rank(x),
        "a": lambda: metrics.normalized_correlation(x, ONES),
        "b": lambda: metrics.normalized_correlation(ONES, x),
        "a ": lambda: metrics.relative_norm_error(x, x),
        "b ": lambda: metrics.relative_norm_error({"x": ONES}, {"x": x}),
        "v0": lambda: metrics.top_eigenvalue(lambda v: v, {"x": x}),
    }
    for name, call in calls.items():
        with pytest.raises(UsageError, match=f"^{name.strip()}=.* is not allowed: it is a number, or an array of numbers$"):
            call()


@pytest.mark.slow
@SOME
@given(SEEDS, st.sampled_from([((4, 4), (4,)), ((4,), (4, 4)), ((2, 3, 4), (3, 1)), ((2, 1, 4), (1, 3, 4)), ((3,), ())]), st.data())
def test_the_axis_of_a_correlation_is_one_of_the_broadcast_arrays(seed, shapes, data):
    """Numpy's correlation of the arrays that were broadcast by numpy, fibre by fibre."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=shape) for shape in shapes)
    whole = np.broadcast_arrays(a, b)
    axis = data.draw(st.integers(-whole[0].ndim, whole[0].ndim - 1))
    fibres = [np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) for x in whole]
    expected = [np.nan if np.ptp(x) == 0 or np.ptp(y) == 0 else np.corrcoef(x, y)[0, 1] for x, y in zip(*fibres, strict=True)]
    found = np.asarray(metrics.normalized_correlation(a, b, axis))
    assert found.shape == tuple(np.delete(whole[0].shape, axis))
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-13)


@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("float32", "float16"), ("float64", "float32"), ("float64", "bfloat16")]
)
def test_leaves_of_zeros_and_of_narrow_dtypes_do_not_hide_a_small_one(dtypes):
    """Numpy's numbers of the small leaf alone: the other one is zero."""
    wide, narrow = (jnp.dtype(d) for d in dtypes)
    small, zeros = np.array([3.0, -4.0], wide) * wide.type(1e-30), np.zeros(2, narrow)
    tree = {"small": small, "zeros": zeros}
    half = {"small": small / 2, "zeros": zeros}
    assert float(metrics.relative_norm_error(half, tree)) == pytest.approx(0.5, rel=1e-6)
    assert float(metrics.relative_norm_error(tree, tree)) == 0
    doubled = metrics.top_eigenvalue(lambda v: jax.tree.map(lambda x: 2 * x, v), tree, 3)
    assert float(doubled) == pytest.approx(2, rel=1e-5)


@functools.cache
def top_of_matrix():
    return jax.jit(lambda h, v: metrics.top_eigenvalue(lambda x: {"x": h @ x["x"]}, {"x": v}, 60))


@SOME
@given(SEEDS, st.sampled_from(["float32", "float64"]), st.floats(-0.75, 0.75), st.floats(-0.95, 0.95))
def test_an_operator_of_any_size_has_its_top_eigenvalue(seed, dtype, size, start):
    """Numpy's eigvalsh in float64 of the matrix in the middle of the range; squares would overflow or vanish from its root on."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    h = (q @ np.diag([5.0, 1.0, -2.0]) @ q.T).astype(dtype)
    top = np.linalg.eigvalsh(h.astype(float))[-1]
    # the operator's own products keep all their digits down to the power -.75
    power, long = (int(x * np.finfo(dtype).maxexp) for x in (size, start))  # powers of two: products with them are exact
    found = top_of_matrix()(np.ldexp(h, power), np.ldexp(np.ones(3, dtype), long))
    # the other eigenvalues have fallen to (2/5)^120 times a start that may be all but orthogonal
    np.testing.assert_allclose(np.ldexp(np.float64(found), -power), top, rtol=20 * np.finfo(dtype).eps)
    assert found == np.ldexp(np.asarray(top_of_matrix()(h, np.ones(3, dtype))), power)


def test_top_eigenvalue_of_nothing_and_of_hermitian_operators():
    assert float(metrics.top_eigenvalue(lambda v: 0 * v, jnp.ones(3), 5)) == 0
    h = jnp.asarray([[2, 1j], [-1j, 2]])
    top = metrics.top_eigenvalue(lambda v: h @ v, jnp.asarray([1, 0.5j]), 60, 1.0)
    assert top.dtype == jnp.float64 and float(top) == pytest.approx(3, rel=1e-12)
    narrow = metrics.top_eigenvalue(lambda v: 3 * v, jnp.ones(2, "float32"), np.int64(4), np.float64(1))
    assert narrow.dtype == jnp.float32 and float(narrow) == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_narrow_dtypes_lose_their_own_rounding_alone(dtype):
    """Trees of 400 leaves and vectors far from zero, against numpy in float64."""
    rng, eps = np.random.default_rng(0), float(jnp.finfo(dtype).eps)
    a, b = ([jnp.asarray(x, dtype) for x in rng.normal(size=(400, 3)) + shift] for shift in (300, 200))
    exact_a, exact_b = (np.asarray(jnp.stack(x), float).ravel() for x in (a, b))
    found = metrics.relative_norm_error(a, b)
    assert found.dtype == dtype
    assert float(found) == pytest.approx(np.linalg.norm(exact_a - exact_b) / np.linalg.norm(exact_b), rel=2 * eps)
    x = np.arange(500) % 40 + 200.0
    y = x + rng.integers(0, 20, 500)
    x, y = (np.asarray(jnp.asarray(z, dtype), float) for z in (x, y))
    found = metrics.normalized_correlation(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
    assert found.dtype == dtype and float(found) == pytest.approx(np.corrcoef(x, y)[0, 1], rel=2 * eps)
