"""The equations of Scan & Snap against an independent integration, mpmath, finite differences and NumPy."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn import flow
from jaxdyn.theories.snap.dynamics import clock as theory
from jaxdyn.theories.snap.dynamics import gradient, growth, reduced
from jaxdyn.theories.snap.dynamics.clock import clock
from jaxdyn.theories.snap.dynamics.gradient import gamma_integral
from jaxdyn.theories.snap.snapping import common_pair
from tests.theories.snap.helpers import small_case

SIZES = (2, 3, 50, 1000, 10**6)


def lambert_clock(s, size):
    """The printed closed form, with 60 digits: u = a - W0(e^a / (M - 1)), a = (s + 1) / (M - 1)."""
    with mpmath.workdps(60):
        a = (mpmath.mpf(s) + 1) / (size - 1)
        return a - mpmath.lambertw(mpmath.exp(a) / (size - 1)).real


@settings(deadline=None, max_examples=15)
@given(exponent=st.floats(-12, 14), size=st.sampled_from(SIZES))
def test_clock_is_lamberts_function(exponent, size):
    s = 10.0**exponent
    want = lambert_clock(s, size)
    with jax.enable_x64(True):
        u = theory.clock(s, float(size))
        assert abs(float(u) - float(want)) <= 4e-15 * float(want)
        for name, exact in (("hit", mpmath.exp(want) / (mpmath.exp(want) + size - 1)), ("miss", 1 / (mpmath.exp(want) + size - 1))):
            assert float(getattr(theory, name)(jnp.float64(float(want)), float(size))) == pytest.approx(float(exact), rel=1e-13)


def test_clock_batches_and_its_edges(x64):
    s = jnp.asarray([0.0, 1e-300, 1e-3, 7.0, 1e3, 1e18, 1e300])
    size = jnp.asarray([2.0, 40.0, 40.0, 1e4, 2.0, 1e9, 1e3])
    batch = jax.jit(jax.vmap(theory.clock))(s, size)
    assert np.allclose(batch, [theory.clock(a, b) for a, b in zip(s, size, strict=True)], rtol=1e-15, atol=0)
    assert np.allclose(batch, theory.clock(s, size), rtol=1e-15, atol=0)
    assert float(batch[0]) == 0 and np.all(np.isfinite(batch))
    assert np.allclose((size - 1) * batch + np.expm1(batch), s, rtol=1e-12)


@pytest.mark.parametrize(("s", "size"), [(0.0, 5.0), (3.0, 40.0), (1e4, 40.0)])
def test_clock_derivatives(x64, s, size):
    u = theory.clock(s, size)
    by_s, by_size = jax.grad(theory.clock, (0, 1))(jnp.float64(s), jnp.float64(size))
    assert float(by_s) == pytest.approx(1 / (size - 1 + np.exp(float(u))), rel=1e-14)
    with mpmath.workdps(40):
        difference = (lambert_clock(s, size + mpmath.mpf("1e-12")) - lambert_clock(s, size - mpmath.mpf("1e-12"))) / mpmath.mpf(
            "2e-12"
        )
    assert float(by_size) == pytest.approx(float(difference), rel=1e-9, abs=1e-12)
    assert float(jax.jvp(theory.clock, (s, size), (1.0, 0.0))[1]) == pytest.approx(float(by_s), rel=1e-15)


def test_visits_are_the_recursion(x64):
    u = theory.visits(6, 0.7, 30.0)
    want = [mpmath.mpf(0)]
    for _ in range(6):
        want.append(want[-1] + mpmath.mpf("0.7") * 30 / (29 + mpmath.exp(want[-1])))
    assert np.allclose(u, [float(w) for w in want], rtol=1e-14)
    assert theory.visits(0, 0.7, 30.0).shape == (1,)


def test_visits_are_the_row_of_a_network(x64):
    size, y, alpha = 7, np.zeros(7), np.full(7, 1 / 7)
    for k in range(5):
        assert float(theory.visits(k, 0.9, float(size))[-1]) == pytest.approx(y[2] - y[0], rel=1e-13, abs=1e-15)
        alpha = np.exp(y) / np.exp(y).sum()
        y = y + 0.9 * (np.eye(size)[2] - alpha)


@pytest.mark.parametrize(("steps", "rows"), [(1, 2), (4, 3), (6, 2)])
def test_expected_is_the_mean_over_all_orders(x64, steps, rows):
    f = np.random.default_rng(0).random(steps + 1)
    brute = np.mean([f[order.count(0)] for order in itertools.product(range(rows), repeat=steps)])
    assert float(theory.expected(jnp.asarray(f), steps, float(rows))) == pytest.approx(brute, rel=1e-13)
    short = np.append(f[:-1], f[-2])
    assert float(theory.expected(jnp.asarray(f[:-1]), steps, float(rows))) == pytest.approx(
        np.mean([short[order.count(0)] for order in itertools.product(range(rows), repeat=steps)]), rel=1e-13
    )


def test_published_check_values(x64):
    """The mixture for N = 100 rows and M = 1000 tokens at eta = 0.5, which the theory's notes list to eight digits."""
    for steps, hit in ((1000, 0.16575979), (10_000, 0.97549390)):
        values = theory.hit(theory.visits(400, 0.5, 1000.0), 1000.0)
        assert float(theory.expected(values, steps, 100.0)) == pytest.approx(hit, abs=6e-9)


M = 6
ascent = jax.jit(gradient.ascent)


def objective(y, z, p, query, label, weight):
    """J at infinite length, in NumPy."""
    total = 0.0
    for n in range(len(p)):
        c = p[n] * np.exp(z[query[n]])
        f = c / np.sqrt((c**2).sum())
        logits = y.T @ f
        total += weight[n] * (logits[label[n]] - np.log(np.exp(logits).sum()))
    return total


def slope(f, x, h=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        out[i] = (f(x + step) - f(x - step)) / (2 * h)
    return out


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_ascent_is_the_slope_of_the_objective(seed):
    y, z, *rest = small_case(seed)
    with jax.enable_x64(True):
        dy, dz = ascent(y, z, *rest)
    assert np.allclose(dy, slope(lambda a: objective(a, z, *rest), y), atol=2e-9)
    assert np.allclose(dz, slope(lambda a: objective(y, a, *rest), z), atol=2e-9)
    assert np.allclose(np.asarray(dy).sum(1), 0, atol=1e-14) and np.allclose(np.asarray(dz).sum(1), 0, atol=1e-14)


def test_one_sequence_is_its_counts(x64):
    y, z, *_ = (jnp.asarray(a) for a in small_case(1))
    ids = np.array([0, 3, 3, 1, 5, 3])
    by_position = jax.jit(gradient.sample_ascent)(y, z, jnp.asarray(np.eye(M)[ids]), 1, 4)
    counts = jnp.asarray(np.bincount(ids, minlength=M), jnp.float64)[None]
    one = jnp.asarray([1])
    by_count = ascent(y, z, counts, one, jnp.asarray([4]), jnp.ones(1))
    for a, b in zip(by_position, by_count, strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-15)


def test_theorem_1_from_a_decoder_that_is_a_clock(x64):
    """The gradient of the decoder Y = F h (M E - 1) has the form of Theorem 1, with gamma, iota and beta as derived."""
    size, u = 12, 1.7
    f = gradient.unit(jnp.asarray(np.kron(np.eye(3), [[1.0, 2.0, 0.5]])))
    f = jnp.concatenate([f, jnp.zeros((3, size - 9))], 1)
    label = np.array([9, 10, 11])
    y = f.T @ (u / size * (size * np.eye(size)[label] - 1))
    got = gradient.backpropagated(y, f, label)
    assert np.allclose(got, gradient.gradient_form(f, jnp.float64(u), size), rtol=1e-12, atol=1e-15)
    assert float(gradient.excess(f)) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("size", [2, 40, 10_000])
def test_peak_of_gamma(x64, size):
    with mpmath.workdps(30):
        u = mpmath.findroot(lambda u: mpmath.exp(u) * (u - 1) - (size - 1), mpmath.log(size) + 0.3)
    assert gradient.peak(size) == pytest.approx(float(u), rel=1e-13)
    near = gradient.gamma(gradient.peak(size) + jnp.asarray([-1e-3, 0.0, 1e-3]), size)
    assert near[1] > near[0] and near[1] > near[2]


def test_published_numbers_of_the_peak(x64):
    u = gradient.peak(10_000)
    assert u == pytest.approx(7.3602, abs=5e-5)
    assert float(gradient.time_at(u, 10_000.0, 1.0, 1.0)) == pytest.approx(7.5166, abs=5e-5)
    assert float(gradient.gamma(jnp.float64(u), 10_000.0)) == pytest.approx(6.3595, abs=5e-5)


def test_integral_of_gamma_and_the_inverse_clock(x64):
    size, classes, eta, t = 40.0, 3.0, 0.7, 25.0
    with mpmath.workdps(20):

        def gamma(time):
            u = mpmath.findroot(lambda u: (size - 1) * u + mpmath.expm1(u) - size * eta * time / classes, 1.0 + mpmath.log1p(time))
            return (size - 1) ** 2 / size * u / (size - 1 + mpmath.exp(u))

        want = float(mpmath.quad(gamma, [0, 5, 12, t]))
    u = theory.clock(size * eta * t / classes, size)
    assert float(gradient.gamma_integral(u, size, classes, eta)) == pytest.approx(want, rel=1e-10)
    assert float(gradient.time_at(u, size, classes, eta)) == pytest.approx(t, rel=1e-13)


def test_xi_counts_the_other_classes(x64):
    f = gradient.unit(jnp.asarray(np.random.default_rng(0).random((3, 5))))
    u = jnp.float64(2.0)
    brute = [sum(f[n] @ f[k] for k in range(3) if k != n) for n in range(3)]
    assert np.allclose(gradient.xi(f, u, 30.0), gradient.gamma(u, 30.0) * 30 / 29**2 * np.array(brute), rtol=1e-13)


def test_spread_is_the_variance_of_all_short_sequences(x64):
    """Leading order against the exact mean over every multinomial count, at two lengths: the error falls like 1/T."""
    p, z = np.array([0.5, 0.3, 0.2]), np.array([0.3, -0.5, 0.1])
    c = np.asarray(gradient.attention(jnp.asarray(z), jnp.asarray(p)))
    assert np.allclose(c, p * np.exp(z) / (p * np.exp(z)).sum(), rtol=1e-14)
    errors = []
    for total in (20, 40):
        exact = 0.0
        for a, b in itertools.product(range(total + 1), repeat=2):
            if a + b <= total:
                k = np.array([a, b, total - a - b])
                log_chance = float(mpmath.loggamma(total + 1) - sum(mpmath.loggamma(x + 1) for x in k)) + k @ np.log(p)
                e = k * np.exp(z)
                exact += np.exp(log_chance) * ((e / e.sum() - c) ** 2).sum()
        errors.append(float(gradient.spread(jnp.asarray(z), jnp.asarray(p), jnp.asarray([float(total)]))[0]) ** 2 / exact - 1)
    assert abs(errors[0]) < 0.1 and abs(errors[1]) == pytest.approx(abs(errors[0]) / 2, rel=0.2)


# P_c = .05, P_d = .95, K = 4, M = 1000, eta_Y = 1, eta_Z = 2e6, rho = 1: B at t = 10 and 1e7, reduced ODE and law, by K_m
VALUES = {
    1: ((1.67993, 2.76048), (1.67925, 2.75978)),
    2: ((1.18746, 1.90789), (1.18701, 1.90743)),
    4: ((0.76353, 1.19582), (0.76326, 1.19554)),
}


def exact_b(t, per_query, odds=1 / 19, k=4, m=1000, eta_y=1.0, eta_z=2e6):
    """The law with mpmath's own root of the clock's equation."""
    with mpmath.workdps(30):
        s = mpmath.mpf(m) * eta_y * t / k
        u = mpmath.findroot(lambda x: (m - 1) * x + mpmath.exp(x) - 1 - s, (0, mpmath.log(s + m)), solver="anderson")
        drive = eta_z * (mpmath.mpf(m - 1) / m) ** 2 * k * u**2 / (2 * eta_y)
        q = 2 * (1 + per_query)
        return float(mpmath.log1p(q * drive * mpmath.mpf(odds) ** 2 * (k - 1) * m / mpmath.mpf(m - 1) ** 2) / q)


@jax.jit
def law(t, per_query):
    u = clock(1000.0 * t / 4, 1000.0)
    drive = 2e6 * gamma_integral(u, 1000.0, 4.0, 1.0)
    return growth.b_law(drive, growth.constant(1 / 19, 4.0, 1000.0), growth.exponent(per_query))


@pytest.mark.slow
def test_values_of_the_law_and_of_the_reduced_dynamics(x64):
    @jax.jit
    @jax.vmap
    def grown(per_query):
        problem = common_pair.problem_of(common_pair.Pair(odds=1 / 19))._replace(member=reduced.queries(4, per_query))
        return reduced.solve(problem, jnp.array([0.0, 10.0, 1e7])).b[1:, 0]

    ts = (10.0, 1e7)
    for per_query, b in zip(VALUES, grown(jnp.array(list(VALUES), jnp.float64)), strict=True):
        ode, predicted = VALUES[per_query]
        np.testing.assert_allclose(b, ode, atol=6e-6)
        np.testing.assert_allclose([law(t, per_query) for t in ts], predicted, atol=6e-6)
        np.testing.assert_allclose([law(t, per_query) for t in ts], [exact_b(t, per_query) for t in ts], rtol=1e-12)


@jax.jit
def slopes(log_t, per_query, eta_z):
    """Of the law in ln t: the formula, and by autodiff."""
    size, k = 1000.0, 4.0

    def b(log_t):
        drive = eta_z * gamma_integral(clock(size * jnp.exp(log_t) / k, size), size, k, 1.0)
        return growth.b_law(drive, growth.constant(0.05, k, size), growth.exponent(per_query))

    u = clock(size * jnp.exp(log_t) / k, size)
    drive = eta_z * gamma_integral(u, size, k, 1.0)
    return growth.slope(u, drive, growth.constant(0.05, k, size), growth.exponent(per_query), size), jax.grad(b)(log_t)


@settings(deadline=None, max_examples=20)
@given(st.floats(-2, 6), st.sampled_from([1.0, 2.0, 4.0]), st.floats(0, 7))
def test_slope_is_the_derivative_of_the_law(exponent, per_query, rate):
    with jax.enable_x64(True):
        predicted, exact = slopes(exponent * np.log(10), per_query, 10.0**rate)
        np.testing.assert_allclose(predicted, exact, rtol=1e-9)


def test_branches_are_the_limits_of_the_drive(x64):
    size, k, eta = 1e4, 3.0, 0.5
    edge = float(k * np.log(size) / eta)
    for t, branch, tolerance in ((1e-3 * edge, growth.early_drive, 1e-3), (1e6 * edge, growth.late_drive, 1e-4)):
        exact = gamma_integral(clock(size * eta * t / k, size), size, k, eta)
        np.testing.assert_allclose(branch(t, size, k, eta), exact, rtol=tolerance)


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-6, 5), st.floats(0.01, 1))
def test_partner_keeps_the_conserved_quantity(z, odds):
    with jax.enable_x64(True):
        other = float(growth.partner(jnp.asarray(z), odds))
        predicted = float(growth.gain(1 / odds**2 - 1, jnp.asarray(z)))
    np.testing.assert_allclose(np.expm1(-2 * other) / odds**2, np.expm1(-2 * z), rtol=1e-9)
    assert 0 <= other <= z * (1 + 1e-12)
    relative = np.exp(2 * (z - other)) / odds**2 - 1  # of the dominant token over the other
    np.testing.assert_allclose(predicted, relative, rtol=1e-8, atol=1e-8)


def test_suppression_is_the_attention_of_two_tokens(x64):
    b, odds, k = 0.7, 0.3, 2.0
    common, distinct = odds * np.exp(-k * b), np.exp(b)
    np.testing.assert_allclose(growth.suppressed(b, odds, k), common / (common + distinct), rtol=1e-7)


def test_dawson_integral(x64):
    for x in (1e-3, 0.3, 1.0, 4.0, 30.0, 1e4):
        nodes = np.concatenate([np.linspace(0, min(x, 8), 20_001), np.geomspace(8, x, 200_001)[1:] if x > 8 else []])
        exact = scipy.integrate.simpson(scipy.special.dawsn(nodes), x=nodes)
        np.testing.assert_allclose(growth.dawson_integral(jnp.asarray(x)), exact, rtol=1e-7)
    late = 0.5 * np.log(2e6) + np.euler_gamma / 4
    np.testing.assert_allclose(growth.dawson_integral(jnp.asarray(1e6)), late, rtol=1e-10)


@pytest.mark.parametrize("q", [4.0, 6.0])
def test_b_with_a_memory_solves_its_equation(x64, q):
    """Of B = epsilon zeta: zeta'' = 1 - (q/2) s zeta'."""
    one = jax.jit(jax.grad(lambda s: growth.b_memory(s, 4.0, 13.0, q) / 0.25))
    two = jax.jit(jax.grad(one))
    for s in (0.2, 1.0, 3.0):
        np.testing.assert_allclose(two(s), 1 - q / 2 * s * one(s), rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_the_memorys_share_is_of_first_order(x64):
    """Against the reduced dynamics with memory, where the decoder learns 1e4 times as fast as the attention."""
    p = jnp.array([[0.001, 0.3, 0.699, 0.0, 0.0], [0.001, 0.0, 0.0, 0.4, 0.599]])
    problem = reduced.Problem(p, jnp.eye(2), 40.0, 2.0, 1e4, 1.0, 0.5)
    ts = jnp.array([0.0, 1.0, 1e2])
    plain, held = (jax.jit(lambda m=m: reduced.solve(problem, ts, memory=m, rtol=1e-13))() for m in (0.0, 1.0))
    f = reduced.features(plain.z[0], problem)
    lag = growth.memory_lag(plain.z, f, plain.u[:, None, None], 1e4, 40.0)
    np.testing.assert_allclose((held.z - plain.z)[1:, :, 1:], lag[1:, :, 1:], rtol=0.02, atol=2e-3 * float(abs(lag).max()))
    odds = p[0, 2] / p[0, 1]
    grown = odds**2 * jnp.expm1(2 * (held.z[-1, 0, 2] - held.z[-1, 0, 1]))
    left = 1 - grown / ((odds**2 - 1) * jnp.expm1(2 * held.z[-1, 0, 2]))
    np.testing.assert_allclose(left, growth.gain_shortfall(f[0, 1], plain.u[-1], 1e4), rtol=0.05)


SIZE, ETA_Y, ETA_Z = 12.0, 0.7, 3.0


def laws(rng, classes, tokens):
    p = rng.uniform(0.1, 1, (classes, tokens))
    p[0, -1] = p[1, 0] = 0
    return p / p.sum(1, keepdims=True)


def oracle(p, member, rho, ts, memory):
    """The equations of section 2c over time itself, in NumPy: state (u, z, G = integral of f du)."""
    k, d = p.shape
    rows = len(member)

    def field(t, y):
        u, z, g = y[0], y[1 : 1 + rows * d].reshape(rows, d), y[1 + rows * d :].reshape(k, d)
        c = p * np.exp(member.T @ z)
        f = c / np.linalg.norm(c, axis=1, keepdims=True)
        du = ETA_Y * SIZE / k / (SIZE - 1 + np.exp(u))
        held = g if memory else u * f
        drive = ((SIZE - 1) * held - (held.sum(0) - held)) / (SIZE - 1 + np.exp(u))
        step = f * (drive - f * (f * drive).sum(1, keepdims=True))
        return np.concatenate([[du], (rho * ETA_Z * member @ step).ravel(), (f * du).ravel()])

    start = np.zeros(1 + rows * d + k * d)
    sol = scipy.integrate.solve_ivp(field, (0, ts[-1]), start, "DOP853", ts, rtol=1e-11, atol=1e-13)
    return sol.y[0], sol.y[1 : 1 + rows * d].T.reshape(-1, rows, d)


@jax.jit
def solved(p, member, rho, ts, memory):
    problem = reduced.Problem(p, member, SIZE, float(p.shape[0]), ETA_Y, ETA_Z, rho)
    return reduced.solve(problem, ts), reduced.solve(problem, ts, memory=memory)


@pytest.mark.slow
@pytest.mark.parametrize("per_query", [pytest.param(1.0, marks=pytest.mark.slow), 2.0])
def test_integration_over_the_clock_is_integration_over_time(x64, per_query):
    p = laws(np.random.default_rng(0), 4, 5)
    member = np.asarray(reduced.queries(4, per_query))
    ts = np.array([0.0, 0.5, 3.0, 20.0, 100.0])
    plain, remembered = solved(p, member, 0.25, ts, 1.0)
    for path, memory in ((plain, False), (remembered, True)):
        u, z = oracle(p, member, 0.25, ts, memory)
        np.testing.assert_allclose(path.u, u, atol=1e-9)
        np.testing.assert_allclose(path.z, z, atol=1e-9)
    without = solved(p, member, 0.25, ts, 0.0)[1]
    np.testing.assert_allclose(without.z, plain.z, atol=1e-9)
    np.testing.assert_allclose(without.b, plain.b, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
def test_integration_over_the_clock_is_integration_over_log_time(x64):
    """Ten decades, to t = 1e7: the equation in ln t, with the clock in closed form, from a state of the path itself."""
    p = laws(np.random.default_rng(1), 3, 4)
    problem = reduced.Problem(p, np.eye(3), SIZE, 3.0, ETA_Y, ETA_Z, 1 / 3)
    ts = np.array([0.0, 1e-3, 1.0, 1e3, 1e7])
    path = jax.jit(lambda ts: reduced.solve(problem, ts))(ts)

    def field(t, z, _):
        u = clock(SIZE * ETA_Y * t / 3.0, SIZE)
        return reduced.rates(reduced.features(z, problem), u, problem)[0]

    over = jax.jit(lambda z: flow.solve(flow.log_time(field), z, jnp.log(jnp.asarray(ts[1:])), rtol=1e-11, atol=1e-14))
    solution = over(path.z[1])
    assert int(solution.status) == 0
    np.testing.assert_allclose(solution.ys, path.z[1:], atol=1e-9)


def test_queries_hold_classes_in_a_row(x64):
    np.testing.assert_array_equal(reduced.queries(4, 1.0), np.eye(4))
    expected = np.zeros((4, 4))
    expected[0, :2] = expected[1, 2:] = 1
    np.testing.assert_array_equal(reduced.queries(4, 2.0), expected)


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 1000), per_query=st.sampled_from([1.0, 2.0]))
def test_rows_keep_their_sum_and_distinct_tokens_gain(seed, per_query):
    rng = np.random.default_rng(seed)
    p = np.zeros((4, 5))
    p[:, 0], p[np.arange(4), 1 + np.arange(4)] = rng.uniform(0.1, 0.5), 1.0
    p /= p.sum(1, keepdims=True)
    with jax.enable_x64(True):
        z = np.asarray(solved(p, reduced.queries(4, per_query), 1.0, np.array([0.0, 0.5, 3.0, 20.0, 100.0]), 1.0)[0].z)
    np.testing.assert_allclose(z.sum(-1), 0, atol=1e-11)
    rows = int(4 / per_query)
    np.testing.assert_allclose(z[:, :rows, 0], -per_query * z[:, 0, 1:2].repeat(rows, 1), atol=1e-9)  # z_c = -K_m z_d
    assert (np.diff(z[:, 0, 1]) > 0).all()


@pytest.mark.slow
def test_a_restart_is_a_run_from_the_attention_it_finds(x64):
    p, member = laws(np.random.default_rng(1), 4, 5), np.eye(4)
    problem = reduced.Problem(p, member, SIZE, 4.0, ETA_Y, ETA_Z)

    @jax.jit
    def both():
        whole = reduced.solve(problem, jnp.array([0.0, 2.0, 10.0, 15.0, 60.0]), restart=10.0)
        return whole, reduced.solve(problem, jnp.array([0.0, 5.0, 50.0]), start=whole.z[2])

    whole, again = both()
    np.testing.assert_allclose(whole.z[2:], again.z, atol=1e-9)
    np.testing.assert_allclose(whole.u[3:], again.u[1:], rtol=1e-12)


def test_a_steady_gamma_ignores_the_clock(x64):
    problem = reduced.Problem(laws(np.random.default_rng(1), 4, 5), jnp.eye(4), SIZE, 4.0, ETA_Y, ETA_Z)
    u = jnp.array([0.5, 8.0])
    assert np.ptp(reduced.speed(u, problem._replace(steady=1.0))) == 0
    np.testing.assert_allclose(reduced.speed(u, problem), (SIZE - 1) ** 2 / SIZE * u / (SIZE - 1 + np.exp(u)), rtol=1e-12)
