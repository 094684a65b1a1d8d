"""Stage I and wide networks against NumPy, SciPy and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics import ridge
from tests.theories.li2.helpers import SHAPES, SIGMA, centred, drawn


def loss(v, f, y, eta):
    return 0.5 * np.sum((centred(y) - centred(f) @ v) ** 2) + 0.5 * eta * np.sum(v**2)


@pytest.mark.parametrize("shape", SHAPES)
def test_solution_is_least_squares_with_further_rows(shape, x64):
    f, y, _ = drawn(0, shape)
    hidden, eta = shape[1], 0.3
    rows = np.concatenate([centred(f), np.sqrt(eta) * np.eye(hidden)])
    expected = np.linalg.lstsq(rows, np.concatenate([centred(y), np.zeros((hidden, 4))]))[0]
    np.testing.assert_allclose(jax.jit(ridge.solution)(f, y, eta), expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_backward_is_the_loss_derivative_by_differences(shape, x64):
    f, y, v = drawn(1, shape)
    step, expected = 1e-6, np.zeros(shape)
    for place in np.ndindex(shape):
        change = np.zeros(shape)
        change[place] = step
        expected[place] = -(loss(v, f + change, y, 0.3) - loss(v, f - change, y, 0.3)) / (2 * step)
    np.testing.assert_allclose(jax.jit(ridge.backward)(f, y, v), expected, atol=1e-7)


@jax.jit
def at_the_ridge(f, y, eta):
    """Compiled in one go: single operations would each be compiled for each shape."""
    v = ridge.solution(f, y, eta)
    return ridge.gram_inverse(f, eta), ridge.residual_operator(f, eta), ridge.fixed(f, y, eta), ridge.backward(f, y, v)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from(SHAPES), st.sampled_from([1e-2, 1.0, 50.0]))
def test_both_operators_and_what_is_sent_at_the_ridge(seed, shape, eta):
    with jax.enable_x64(True):
        f, y, _ = drawn(seed, shape)
        fc, yc = centred(f), centred(y)
        b = np.linalg.inv(fc.T @ fc + eta * np.eye(shape[1]))
        p = np.eye(shape[0]) - fc @ b @ fc.T
        inverse, operator, sent, again = at_the_ridge(f, y, eta)
        np.testing.assert_allclose(inverse, b, atol=1e-10 * np.abs(b).max())
        np.testing.assert_allclose(operator, p, atol=1e-10)
        expected = p @ yc @ yc.T @ fc @ b
        np.testing.assert_allclose(sent, expected, atol=1e-10 * np.abs(expected).max())
        np.testing.assert_allclose(again, expected, atol=1e-9 * np.abs(expected).max())


def test_path_is_the_matrix_exponential(x64):
    f, y, v0 = drawn(2, SHAPES[0])
    fc, yc, eta, ts = centred(f), centred(y), 0.2, np.array([0.0, 1e-3, 0.1, 4.0])
    a = fc.T @ fc + eta * np.eye(5)
    star = np.linalg.solve(a, fc.T @ yc)
    expected = np.stack([scipy.linalg.expm(-a * t) @ (v0 - star) + star for t in ts])
    np.testing.assert_allclose(jax.jit(ridge.path)(f, y, v0, eta, ts), expected, atol=1e-12)


def test_growth_from_nothing_is_the_targets_seen_through_the_features(x64):
    f, y, v0 = drawn(3, SHAPES[0])
    t = 1e-8
    v = ridge.path(f, y, 0 * v0, 0.2, jnp.array([t]))[0]
    expected = centred(y) @ centred(y).T @ centred(f)
    np.testing.assert_allclose(ridge.backward(f, y, v) / t, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ridge.early(f, y), expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_vanishing_ridge_with_targets_in_the_span_and_not(shape, x64):
    f, y, _ = drawn(4, shape)
    eta = 1e-8
    limit, slope = jax.jit(ridge.unridged)(f, y)
    found = ridge.fixed(f, y, eta)
    if shape[1] >= shape[0] - 1:
        np.testing.assert_allclose(limit, 0, atol=1e-12)
        np.testing.assert_allclose(found / eta, slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())
    else:
        assert np.linalg.norm(limit) > 0.01
        np.testing.assert_allclose(found, limit, atol=1e-6)


@pytest.mark.parametrize("name", SIGMA)
@pytest.mark.parametrize("t", [0, 1, 2])
def test_kernel_is_the_gaussian_mean_product(name, t):
    """By quadrature on quadrants, so that no kink is crossed: after rotation to independent a and b' each is cut at zero."""
    sigma, variance, spread = SIGMA[name], 2 * 0.9**2, 0.9
    rho = t / 2
    x, w = np.polynomial.legendre.leggauss(60)

    def half(low, high):
        return (high - low) / 2 * x + (high + low) / 2, (high - low) / 2 * w

    total, root = 0.0, np.sqrt(variance)
    for low, high in ((-9, -4), (-4, 0), (0, 4), (4, 9)):
        for a, weight in zip(*half(low, high), strict=True):
            if t == 2:
                inner = sigma(root * a)
            else:
                cut = np.clip(-rho * a / np.sqrt(1 - rho**2), -9, 9)  # where the second operand changes sign
                inner = 0.0
                for ends in ((-9, min(cut, 0)), (min(cut, 0), max(cut, 0)), (max(cut, 0), 9)):
                    b, v = half(*ends)
                    second = sigma(root * (rho * a + np.sqrt(1 - rho**2) * b))
                    inner += np.sum(v * second * np.exp(-(b**2) / 2)) / np.sqrt(2 * np.pi)
            total += weight * sigma(root * a) * inner * np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
    assert ridge.kernel(name, t, spread) == pytest.approx(total, rel=1e-9, abs=1e-12)


def test_contrasts_of_the_activations():
    assert ridge.contrast("square", 1.3) == pytest.approx(4 * 1.3**4, rel=1e-14)
    assert ridge.contrast("cube") == pytest.approx(36, rel=1e-14)
    assert ridge.contrast("linear") == 0
    assert ridge.contrast("relu") == pytest.approx(1 - 2 * (np.sqrt(3) / 2 + np.pi / 3) / np.pi + 1 / np.pi, rel=1e-13)
    assert ridge.contrast("relu") == pytest.approx(0.100314, abs=5e-7)
    assert ridge.contrast("silu") == pytest.approx(0.086823, abs=5e-7)
    assert ridge.contrast("tanh") == pytest.approx(0.0479611, abs=5e-8)


def test_the_contrast_is_the_kernels_eigenvalue_on_the_class_signal():
    order = 5
    group = parse("5")
    h = np.stack(np.divmod(np.arange(order**2), order), -1)
    shared = (h[:, None] == h).sum(-1)
    kernel = np.array([ridge.kernel("relu", t) for t in range(3)])[shared]
    signal = centred(np.eye(order)[group.table[h[:, 0], h[:, 1]]])
    np.testing.assert_allclose(kernel @ signal, ridge.contrast("relu") * signal, atol=1e-12)


def test_factors_of_great_width():
    assert float(ridge.wide(jnp.float32(10.0), 2.0, 0.5)) == pytest.approx(2 / 49)
    assert float(ridge.wide_as_printed(jnp.float32(10.0), 7, 2.0, 0.5, 1.0)) == pytest.approx(2 / (7 * 9))


@pytest.mark.parametrize(
    ("activation", "sigma"),
    [
        ("hard_tanh", lambda x: np.clip(x, -1, 1)),
        ("elu", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
        (np.sin, np.sin),
    ],
)
@pytest.mark.parametrize("scale", [0.05, 0.9])
def test_kernels_of_any_function_are_gaussian_mean_products(activation, sigma, scale):
    """By midpoints on a fine grid, on which rows with kinks have no weight to speak of."""
    x = (np.arange(-4000, 4000) + 0.5) / 500
    weight = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) / 500
    root = np.sqrt(2) * scale
    assert ridge.kernel(activation, 2, scale) == pytest.approx(np.sum(weight * sigma(root * x) ** 2), rel=1e-5)
    mean = np.sum(weight * sigma(root * x))
    assert ridge.kernel(activation, 0, scale) == pytest.approx(mean**2, rel=1e-5, abs=1e-12)
    coarse = x[::8] + 0.007
    inner = [np.sum(weight * sigma(root * (a / 2 + np.sqrt(0.75) * x))) for a in coarse]
    outer = np.sum(8 * np.exp(-(coarse**2) / 2) / np.sqrt(2 * np.pi) / 500 * sigma(root * coarse) * inner)
    assert ridge.kernel(activation, 1, scale) == pytest.approx(outer, rel=1e-5)


@pytest.mark.parametrize("activation", ["softmax", "one_hot", "nothing", lambda x: x[:1]])
def test_kernels_need_a_function_of_each_entry(activation):
    with pytest.raises(jd.UsageError, match="activation=.* is not allowed"):
        ridge.kernel(activation, 1)
    with pytest.raises(jd.UsageError, match="t=3 is not allowed"):
        ridge.kernel("relu", 3)
