"""Cosines against loops, also where the rows do not fill their blocks."""

import jax
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import observe


def mean_cosine(x):
    return float(jax.jit(lambda x: observe.mean_cosine(x))(x))  # a program of its own for every ROWS


def unit_gram_error(x):
    return float(jax.jit(lambda x: observe.unit_gram_error(x))(x))


def looped_mean(x):
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x)) if i != j]
    return np.mean([abs(x[i] @ x[j]) / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) for i, j in pairs])


@pytest.mark.parametrize(("n", "rows"), [(10, 4), (10, 5), (3, 1024), (5, 1)])
def test_mean_cosine_is_that_of_all_pairs_whatever_the_blocks(x64, monkeypatch, n, rows):
    monkeypatch.setattr(observe, "ROWS", rows)
    x = np.random.default_rng(n).normal(size=(n, 4))
    assert mean_cosine(x) == pytest.approx(looped_mean(x), rel=1e-12)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert unit_gram_error(x) == pytest.approx(np.linalg.norm(unit @ unit.T - np.eye(n)), rel=1e-11)


def test_lengths_and_signs_do_not_matter(x64):
    x = np.random.default_rng(0).normal(size=(6, 5))
    scaled = x * np.array([1, -2, 1e-3, 50, -1, 3])[:, None]
    assert mean_cosine(scaled) == pytest.approx(mean_cosine(x), rel=1e-12)


def test_limits(x64):
    assert mean_cosine(np.eye(4)) == 0
    assert mean_cosine(np.outer([1, -1, 2, -3], [1, 2, 1.0])) == pytest.approx(1, rel=1e-14)
    assert unit_gram_error(np.ones((4, 3))) == pytest.approx(np.sqrt(12), rel=1e-14)
    with_zero = np.diag([1.0, 1, 0, 1])
    assert mean_cosine(with_zero) == 0
    assert unit_gram_error(with_zero) == pytest.approx(1)


def test_orthonormal_rows_have_no_error_but_rounding_in_single_precision():
    """Subtracting the diagonal from the whole sum would leave the root of n roundings: 1e-3, or the root of a negative number."""
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0].astype(np.float32)
    assert unit_gram_error(q) < 64 * 2e-7
    assert mean_cosine(q) < 1e-7


def test_a_vocabulary_whose_pairs_pass_32_bits_can_be_measured_without_64_bits():
    shape = jax.ShapeDtypeStruct((50_257, 2), np.float32)
    assert jax.eval_shape(observe.mean_cosine, shape).dtype == np.float32
    assert jax.eval_shape(observe.unit_gram_error, shape).dtype == np.float32


def test_random_directions_have_the_published_mean(x64):
    """Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2)) at d = 512 is 0.03528; 400 vectors have 79 800 pairs, hence 1%."""
    x = np.random.default_rng(1).normal(size=(400, 512))
    assert mean_cosine(x) == pytest.approx(0.03528, rel=0.01)


@pytest.mark.parametrize("call", [observe.mean_cosine, observe.unit_gram_error])
def test_what_is_no_real_matrix_is_refused_and_nan_is_not_lost(call):
    for x in (np.ones(3), np.ones((0, 3)), np.asarray([[1, 1j], [1j, 1]]), np.ones((2, 2, 2))):
        with pytest.raises(UsageError, match="vectors=.* is not allowed: it is a real matrix with [12] rows or more"):
            call(x)
    for spoiled in (np.nan, np.inf):
        assert np.isnan(call(np.asarray([[1, spoiled], [1, 2]], np.float32)))
    np.testing.assert_allclose(call(np.asarray([[2, 0], [3, 0]])), call(np.asarray([[2.0, 0], [3, 0]], np.float32)))


def test_one_row_has_no_pair():
    with pytest.raises(UsageError, match=r"vectors=float32\[1,3\] is not allowed: it is a real matrix with 2 rows or more"):
        observe.mean_cosine(np.ones((1, 3), np.float32))
