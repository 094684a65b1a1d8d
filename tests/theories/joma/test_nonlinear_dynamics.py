"""Theorems 3 and 4 of JoMA: integrals and exact solutions against mpmath, SciPy and sampling from the mathematics."""

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
from jaxdyn.theories.joma.dynamics import nonlinear

pytestmark = pytest.mark.usefixtures("x64")


SLOPES = {
    "id": lambda y: 1.0,
    "relu": lambda y: float(y > 0),
    "tanh": lambda y: 1 - np.tanh(y) ** 2,
    "gelu": lambda y: scipy.stats.norm.cdf(y) + y * scipy.stats.norm.pdf(y),
    "silu": lambda y: scipy.special.expit(y) * (1 + y * (1 - scipy.special.expit(y))),
}


theta = jax.jit(nonlinear.theta, static_argnums=5)
field = jax.jit(nonlinear.mixture_field)


def code(name):
    """The switch at an activation or a noise."""
    return jd.Code.of(name, nonlinear.NOISES if name in nonlinear.NOISES else nonlinear.ACTIVATIONS)


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


@pytest.mark.parametrize("name", nonlinear.ACTIVATIONS)
def test_slope_is_the_derivative(name):
    x = jnp.array([-3.0, -0.7, 0.2, 1.0, 4.0], jnp.float64)
    exact = jax.vmap(jax.grad(lambda y: nonlinear.activation(code(name), y)))(x)
    np.testing.assert_allclose(nonlinear.activation_slope(code(name), x), exact, atol=1e-14)
    np.testing.assert_allclose(exact, [SLOPES[name](float(y)) for y in x], atol=1e-14)


@pytest.mark.parametrize("name", nonlinear.ACTIVATIONS)
@pytest.mark.parametrize("noise", nonlinear.NOISES)
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
@pytest.mark.parametrize("noise", nonlinear.NOISES)
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
@pytest.mark.parametrize("noise", nonlinear.NOISES)
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
        phi = jd.Code(index, nonlinear.ACTIVATIONS)
        return jnp.stack(nonlinear.theta(phi, code("sphere"), r, norm_, jnp.float64(0.5), 6))

    codes = jnp.arange(len(nonlinear.ACTIVATIONS), dtype=jnp.int32)
    batched = jax.jit(jax.vmap(jax.vmap(both, (None, 0)), (0, None)))(codes, norm)
    alone = jax.jit(both)
    looped = np.array([[alone(c, n) for n in norm] for c in codes])
    np.testing.assert_allclose(batched, looped, rtol=1e-13, atol=1e-13)


pytestmark = pytest.mark.usefixtures("x64")


C_AT_INFINITY = {0.5: 0.194895, 1: 0.880825, 2: 6.343538, 3: 55.50084, 4: 1227.033}


orbit = jax.jit(nonlinear.orbit)
clock = jax.jit(nonlinear.clock)


@pytest.mark.parametrize("mu", C_AT_INFINITY)
def test_offset_at_infinity(mu):
    exact = mpmath.quad(lambda x: mpmath.expm1(mpmath.mpf(mu) ** 2 / 2 * (2 * x - x**2)) / x, [0, 0.5, 1])
    value = float(nonlinear.offset(jnp.float64(800.0), jnp.float64(mu**2 / 2)))
    assert abs(value / float(exact) - 1) < 1e-13
    assert abs(value / C_AT_INFINITY[mu] - 1) < 3e-6


@settings(deadline=None, max_examples=8)
@given(mu=st.floats(0.4, 4), start=st.floats(-0.3, 0.3), s=st.floats(0.5, 30))
def test_offset_from_any_start(mu, start, s):
    s0 = -np.log1p(-start / mu)
    with jax.enable_x64(True):
        value = float(nonlinear.offset(jnp.float64(s), jnp.float64(mu**2 / 2), jnp.float64(s0)))
    exact = mpmath.quad(lambda x: mpmath.expm1(mu**2 / 2 * (2 * x - x**2)) / x, [mpmath.e**-s, mpmath.e**-s0])
    assert abs(value - float(exact)) < 1e-11 * max(1, abs(float(exact)))


def test_orbit_solves_the_equation():
    mu, v0 = np.array([0.7, 1.5, 2.5]), np.array([0.2, -0.3, 0.1])
    t = np.array([0.05, 0.3, 1.0, 2.0])
    oracle = scipy.integrate.solve_ivp(
        lambda _, v: (mu - v) * np.exp(v**2 / 2), (0, 2), v0, t_eval=t, method="Radau", rtol=1e-10, atol=1e-12
    )
    s = orbit(jnp.array(t)[:, None], jnp.array(mu**2 / 2), jnp.array(-np.log1p(-v0 / mu)))
    np.testing.assert_allclose(-mu * np.expm1(-s), oracle.y.T, atol=1e-8)


@settings(deadline=None, max_examples=10)
@given(mu=st.floats(0.3, 4), start=st.floats(-0.3, 0.25), log_t=st.floats(-3, 5))
def test_orbit_inverts_the_clock(mu, start, log_t):
    with jax.enable_x64(True):
        kappa, s0, t = jnp.float64(mu**2 / 2), jnp.float64(-np.log1p(-start / mu)), jnp.float64(10**log_t)
        s = orbit(t, kappa, s0)
        assert abs(clock(s, kappa, s0) / t - 1) < 1e-11
        assert s > s0


def test_orbit_in_softmax_time():
    mu, temperature = np.array([1.2, 2.0, 2.9, 3.7]), 3.0
    tau = np.linspace(0, 40, 21)

    def rate(_, v):
        p = scipy.special.softmax(v**2 / temperature)
        return (mu - v) * p

    oracle = scipy.integrate.solve_ivp(rate, (0, 40), np.full(4, 0.05), t_eval=tau, method="DOP853", rtol=1e-11, atol=1e-13)
    s0 = jnp.array(-np.log1p(-0.05 / mu))
    s = nonlinear.orbit_in_softmax_time(jnp.array(tau), jnp.array(mu**2 / temperature), s0)
    np.testing.assert_allclose(-mu * np.expm1(-s), oracle.y.T, atol=1e-8)
    np.testing.assert_allclose(jnp.sum(s - s0, -1), tau, atol=1e-11)


def test_limits_of_the_slope_ratio():
    mu, c = np.array([1.0, 2.0, 2.5]), 0.7
    kappa = jnp.array(mu**2 / 2)
    t = clock(jnp.array([25.0, 26.0]), kappa[0])
    s = orbit(t[:, None], kappa)
    np.testing.assert_allclose((s[1] - s[0]) / (s[1, 0] - s[0, 0]), nonlinear.slope_ratio(kappa), rtol=1e-9)

    def rate(_, s):
        return np.sqrt((mu * -np.expm1(-s)) ** 2 + c)

    far = scipy.integrate.solve_ivp(rate, (0, 30), np.zeros(3), t_eval=[25, 30], rtol=1e-11, atol=1e-12).y
    measured = (far[:, 1] - far[:, 0]) / (far[0, 1] - far[0, 0])
    np.testing.assert_allclose(nonlinear.linear_slope_ratio(jnp.array(mu), jnp.float64(c)), measured, rtol=1e-8)


def test_entropy_of_logits():
    logits = np.array([[0.0, 0.0, 0.0], [800.0, 0.0, -800.0], [1.0, 2.0, 3.0]])
    expected = [np.log(3), 0.0, scipy.stats.entropy(scipy.special.softmax(logits[2]))]
    np.testing.assert_allclose(nonlinear.entropy_of_logits(jnp.array(logits)), expected, atol=1e-14)


def test_softmax_logits_against_scipy():
    mu, v0, temperature = np.array([1.2, 2.0, 3.1]), np.full(3, 0.05), 3.0

    def field(_, y):
        v, z = y[:3], y[3:]
        p = scipy.special.softmax(z)
        growth = 2 * v * p * (mu - v)
        return np.concatenate([p * (mu - v), (growth - p * growth.sum()) / temperature])

    tau = np.linspace(0, 40, 9)
    exact = scipy.integrate.solve_ivp(field, (0, 40), np.concatenate([v0, v0**2 / 3]), t_eval=tau, rtol=1e-10, atol=1e-12).y.T
    v, z = jax.jit(nonlinear.softmax_logits)(jnp.array(tau), jnp.array(mu), jnp.array(v0), jnp.float64(temperature)).ys
    np.testing.assert_allclose(np.concatenate([v, z], 1), exact, atol=1e-7)
    np.testing.assert_allclose(z.sum(1), z[0].sum(), atol=1e-9)  # the softmax conserves the sum of the logits


def test_separate_rate_is_an_eigenvalue_of_the_linearised_flow():
    """Of v' = p e^z (y - e^z v), z = (|v|^2 - |v0|^2) / 2, by finite differences at its fixed point."""
    mu, v0, share = np.array([0.7, -0.4, 0.9]), np.array([0.2, 0.1, -0.1]), 0.125

    def factor(v):
        return np.exp((v @ v - v0 @ v0) / 2)

    def field(v):
        return share * factor(v) * (factor(mu) * mu - factor(v) * v)

    h = 1e-6
    jacobian = np.stack([(field(mu + h * e) - field(mu - h * e)) / (2 * h) for e in np.eye(3)], 1)
    rates = np.sort(-np.linalg.eigvals(jacobian).real)
    slow, along = (
        float(nonlinear.separate_rate(jnp.float64(mu @ mu / 2), jnp.float64(v0 @ v0 / 2), share, nodes)) for nodes in (3, 1)
    )
    np.testing.assert_allclose(rates, [slow, slow, along], rtol=1e-8)
