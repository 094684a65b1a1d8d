"""Theorem 3 of JoMA: the integrals against mpmath and SciPy, the field against sampling written from the mathematics."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.theories.joma.dynamics import thm3

pytestmark = pytest.mark.usefixtures("x64")


SLOPES = {
    "id": lambda y: 1.0,
    "relu": lambda y: float(y > 0),
    "tanh": lambda y: 1 - np.tanh(y) ** 2,
    "gelu": lambda y: scipy.stats.norm.cdf(y) + y * scipy.stats.norm.pdf(y),
    "silu": lambda y: scipy.special.expit(y) * (1 + y * (1 - scipy.special.expit(y))),
}


theta = jax.jit(thm3.theta, static_argnums=5)
field = jax.jit(thm3.mixture_field)


def code(name):
    """The switch at an activation or a noise."""
    return jd.Code.of(name, thm3.NOISES if name in thm3.NOISES else thm3.ACTIVATIONS)


def density(noise, d, scale):
    """Density of one noise coordinate, and the half-width of its support."""
    if noise == "gauss":
        return lambda e: scipy.stats.norm.pdf(e, scale=scale), 12 * scale
    radius = scale * np.sqrt(d)
    size = scipy.integrate.quad(lambda e: (1 - (e / radius) ** 2) ** ((d - 3) / 2), -radius, radius, epsabs=1e-14)[0]
    return lambda e: (1 - (e / radius) ** 2) ** ((d - 3) / 2) / size, radius


def theta_by_quadrature(name, noise, r, norm, scale, d):
    p, reach = density(noise, d, scale)
    kink = [-r / norm] if abs(r / norm) < reach else None
    options = {"points": kink, "limit": 400, "epsabs": 1e-13}
    first = scipy.integrate.quad(lambda e: SLOPES[name](r + norm * e) * p(e), -reach, reach, **options)[0]
    second = scipy.integrate.quad(lambda e: SLOPES[name](r + norm * e) * e * p(e), -reach, reach, **options)[0]
    return norm * first, norm**2 * second


@pytest.mark.parametrize("name", thm3.ACTIVATIONS)
def test_slope_is_the_derivative(name):
    x = jnp.array([-3.0, -0.7, 0.2, 1.0, 4.0], jnp.float64)
    exact = jax.vmap(jax.grad(lambda y: thm3.activation(code(name), y)))(x)
    np.testing.assert_allclose(thm3.activation_slope(code(name), x), exact, atol=1e-14)
    np.testing.assert_allclose(exact, [SLOPES[name](float(y)) for y in x], atol=1e-14)


@pytest.mark.parametrize("name", thm3.ACTIVATIONS)
@pytest.mark.parametrize("noise", thm3.NOISES)
def test_theta_is_the_integral(name, noise):
    d, r, norm, scale = 6, jnp.array([-1.2, 0.3, 2.0], jnp.float64), 1.7, 0.8
    first, second = theta(code(name), code(noise), r, jnp.float64(norm), jnp.float64(scale), d)
    expected = np.array([theta_by_quadrature(name, noise, float(x), norm, scale, d) for x in r])
    np.testing.assert_allclose(first, expected[:, 0], atol=1e-9)
    np.testing.assert_allclose(second, expected[:, 1], atol=1e-9)


def test_theta_stays_accurate_where_gauss_hermite_is_not():
    """At scale * norm = 4 the poles of tanh' lie close to the real line: 64 Gauss-Hermite nodes miss by over 1%."""
    first, _ = theta(code("tanh"), code("gauss"), jnp.array([0.3], jnp.float64), jnp.float64(4.0), jnp.float64(1.0), 8)
    exact = theta_by_quadrature("tanh", "gauss", 0.3, 4.0, 1.0, 8)[0]
    x, w = np.polynomial.hermite_e.hermegauss(64)
    hermite = 4 * np.sum(w * (1 - np.tanh(0.3 + 4 * x) ** 2)) / w.sum()
    assert abs(first[0] / exact - 1) < 1e-9
    assert abs(hermite / exact - 1) > 1e-2


def theta_by_mpmath(name, noise, r, width, d):
    """Both integrals for norm 1 and scale ``width``, over the noise of unit variance, in 25 digits."""
    slope = {
        "tanh": lambda y: mpmath.sech(y) ** 2,
        "gelu": lambda y: mpmath.ncdf(y) + y * mpmath.npdf(y),
    }[name]
    if noise == "gauss":
        density, reach = mpmath.npdf, 10
    else:
        size = mpmath.gamma(d / 2) / mpmath.gamma((d - 1) / 2) / mpmath.sqrt(mpmath.pi * d)
        density, reach = lambda e: size * (1 - e * e / d) ** ((d - 3) // 2), mpmath.sqrt(d)
    zero = -r / width
    marks = (-reach, -reach / 2, 0, reach / 2, reach, *(zero + k / width for k in (-30, -8, -3, 0, 3, 8, 30)))
    points = sorted({mpmath.mpf(x) for x in marks if -reach <= x <= reach})
    with mpmath.workdps(25):
        return [float(mpmath.quad(lambda e, k=k: slope(r + width * e) * density(e) * e**k, points)) for k in (0, 1)]


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["tanh", "gelu"])
@pytest.mark.parametrize("noise", thm3.NOISES)
@pytest.mark.parametrize("width", [4.0, 12.0, 100.0])
def test_theta_is_accurate_for_large_weights(name, noise, width):
    """A fixed trapezoid rule of 161 nodes on [-9, 9] was 1.2% off at 12."""
    for share in (0.0, 0.7, -3.0):
        r = jnp.array([share * width], jnp.float64)
        first, second = theta(code(name), code(noise), r, jnp.float64(width), jnp.float64(1.0), 7)
        exact = theta_by_mpmath(name, noise, share * width, width, 7)
        np.testing.assert_allclose([first[0] / width, second[0] / width**2], exact, rtol=1e-9, atol=1e-10)


@settings(deadline=None, max_examples=10)
@given(r=st.floats(-3, 3), norm=st.floats(0.2, 4), scale=st.floats(0.1, 1))
def test_gelu_has_a_closed_form_under_gaussian_noise(r, norm, scale):
    with jax.enable_x64(True):
        first, _ = theta(code("gelu"), code("gauss"), jnp.array([r], jnp.float64), jnp.float64(norm), jnp.float64(scale), 8)
    wide = np.sqrt(1 + (norm * scale) ** 2)
    exact = scipy.stats.norm.cdf(r / wide) + r / wide**3 * scipy.stats.norm.pdf(r / wide)
    assert abs(first[0] / norm - exact) < 1e-9


def test_identity_gives_back_the_saliency():
    rng = np.random.default_rng(0)
    centres, a, v = rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=6)
    dv, dxi = field(jnp.array(v), jnp.float64(0.4), jnp.array(centres), jnp.array(a), code("id"), code("gauss"), jnp.float64(0.5))
    np.testing.assert_allclose(dv, a @ centres, atol=1e-12)
    np.testing.assert_allclose(dxi, a.sum(), atol=1e-12)


@pytest.mark.parametrize("name", ["relu", "tanh"])
@pytest.mark.parametrize("noise", thm3.NOISES)
def test_field_is_the_population_gradient(name, noise):
    """Against the mean of g phi'(v.x + xi) (x, 1) over samples drawn here, within 5 standard errors."""
    rng = np.random.default_rng(1)
    d, n, scale, xi = 6, 50_000, 0.6, 0.6
    centres, a, v = rng.normal(size=(2, d)), np.array([0.7, -0.4]), 0.9 * rng.normal(size=d) + 0.7
    e = rng.normal(size=(2, n, d))
    e = e if noise == "gauss" else e * np.sqrt(d) / np.linalg.norm(e, axis=-1, keepdims=True)
    x = np.concatenate([centres[:, None] + scale * e, np.ones((2, n, 1))], -1)
    pre = x[..., :d] @ v + xi
    slope = 1.0 * (pre > 0) if name == "relu" else 1 - np.tanh(pre) ** 2
    each = 2 * np.moveaxis(a[:, None, None] * slope[..., None] * x, 0, 1).mean(1)
    measured, error = each.mean(0), each.std(0) / np.sqrt(n)
    noise_code = code(noise)
    args = jnp.array(v), jnp.float64(xi), jnp.array(centres), jnp.array(a), code(name), noise_code, jnp.float64(scale)
    dv, dxi = field(*args)
    assert np.all(np.abs(np.append(dv, dxi) - measured) < 5 * error)
    dv, dxi = field(*args, keep_xi=0.0)
    assert np.any(np.abs(np.append(dv, dxi) - measured) > 20 * error)
    dv, dxi = field(*args, theta_norm=jnp.float64(1))
    assert np.any(np.abs(np.append(dv, dxi) - measured) > 20 * error)


def test_jit_and_vmap_change_nothing():
    r, norm = jnp.array([-0.5, 0.8], jnp.float64), jnp.array([0.5, 2.0], jnp.float64)

    def both(index, norm_):
        phi = jd.Code(index, thm3.ACTIVATIONS)
        return jnp.stack(thm3.theta(phi, code("sphere"), r, norm_, jnp.float64(0.5), 6))

    codes = jnp.arange(len(thm3.ACTIVATIONS), dtype=jnp.int32)
    batched = jax.jit(jax.vmap(jax.vmap(both, (None, 0)), (0, None)))(codes, norm)
    alone = jax.jit(both)
    looped = np.array([[alone(c, n) for n in norm] for c in codes])
    np.testing.assert_allclose(batched, looped, rtol=1e-13, atol=1e-13)
