"""Equations of JoMA: invariants, linear activation, many nodes and the latent tree, against NumPy, SciPy and mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.special
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate

import jaxdyn as jd
from jaxdyn.data import trees
from jaxdyn.metrics import stable_rank
from jaxdyn.theories.joma.dynamics import hblt as hblt_theory
from jaxdyn.theories.joma.dynamics import invariants as theory
from jaxdyn.theories.joma.dynamics import linear
from jaxdyn.theories.joma.dynamics import linear as linear_theory

KINDS = ("exp", "linear")


def descend(seed, kind, r, tau, steps=40, lr=0.05, momentum=0.0):
    """Mini-batch descent of a tanh network in NumPy; returns the drift of the law and the sums of squared increments."""
    rng = np.random.default_rng(seed)
    m, k, n = 3, 2, 5
    v, z, xi = rng.normal(size=(m, k)), 0.5 + 0.3 * rng.normal(size=m), rng.normal(size=k)
    x, y = rng.random((n, m)), rng.normal(size=(n, k))
    v0, z0, dv2, dz2, bv, bz = v, z, 0.0, 0.0, 0.0, 0.0
    for _ in range(steps):
        rows = rng.random(n) < 0.6
        xs, ys = x[rows], y[rows]
        b = xs * np.exp(z / tau) if kind == "exp" else xs * z
        h = np.tanh(b @ v + xi)
        g = (ys - h) * (1 - h**2)
        jacobian = b / tau if kind == "exp" else xs
        bv, bz = momentum * bv + b.T @ g, momentum * bz + (jacobian * (g @ v.T)).sum(0)
        v, z, xi = v + lr * bv, z + lr * r * bz, xi + lr * g.sum(0)
        dv2, dz2 = dv2 + (lr * bv) ** 2, dz2 + (lr * r * bz) ** 2
    side = z - z0 if kind == "exp" else z**2 - z0**2
    weights = (r / (2 * tau) if kind == "exp" else r) * ((v**2).sum(1) - (v0**2).sum(1))
    return side - weights, dv2, dz2


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), r=st.sampled_from([0.1, 3.0]), tau=st.sampled_from([0.5, 1.0]))
def test_discrete_identity_of_an_independent_network(seed, kind, r, tau):
    drift, dv2, dz2 = descend(seed, kind, r, tau)
    assume(np.abs(drift).max() > 1e-6)  # a rare network hardly moves and can tell nothing
    with jax.enable_x64(True):
        want = theory.discrete_drift(jnp.asarray(dv2), jnp.asarray(dz2), r, tau, jd.Code.of(kind, KINDS))
    assert np.allclose(drift, want, rtol=1e-9, atol=1e-12)


def test_discrete_identity_fails_with_momentum(x64):
    drift, dv2, dz2 = descend(1, "exp", 1.0, 1.0, momentum=0.9)
    want = theory.discrete_drift(jnp.asarray(dv2), jnp.asarray(dz2), 1.0, 1.0, jd.Code.of("exp", KINDS))
    assert np.abs(drift - want).max() > 0.1 * np.abs(want).max()


@pytest.mark.parametrize("kind", KINDS)
def test_decay_pull_is_the_rate_of_the_invariant_under_pure_decay(x64, kind):
    """With no gradient but that of the decay, z and v shrink at rates r and 1: the invariant's rate by differences."""
    rng = np.random.default_rng(3)
    z, v, r, tau, dt = rng.normal(size=3), rng.normal(size=(3, 2)), 3.0, 0.5, 1e-5
    side = (lambda z: z) if kind == "exp" else (lambda z: z**2)
    factor = r / (2 * tau) if kind == "exp" else r
    at = [side(z * np.exp(-r * t)) - factor * ((v * np.exp(-t)) ** 2).sum(1) for t in (-dt, dt)]
    got = theory.decay_pull(jnp.asarray(side(z)), jnp.asarray(v), r, tau, jd.Code.of(kind, KINDS))
    assert np.allclose(got, (at[1] - at[0]) / (2 * dt), rtol=1e-8)


def test_softmax_law_and_its_terms(x64):
    rng = np.random.default_rng(0)
    v, v0, z0 = rng.normal(size=(5, 3, 2)), rng.normal(size=(3, 2)), rng.normal(size=3)
    v, v0, z0, b = (jnp.asarray(a) for a in (v, v0, z0, [0.5, 0.3, 0.2]))

    def written_out(factor):
        change = lambda v: (v**2).sum(1) - factor * b * (v**2).sum()  # noqa: E731
        return np.stack([z0 + 2.0 / (2 * 0.5) * (change(vt) - change(v0)) for vt in v])

    assert np.allclose(theory.softmax_law(v, v0, z0, b, 2.0, 0.5), written_out(1.0), rtol=1e-13)
    assert np.allclose(theory.softmax_law(v, v0, z0, b, 2.0, 0.5, 2.0), written_out(2.0), rtol=1e-13)
    square, norm = theory.estimator_terms(v, b, 2.0, 0.5)
    assert np.allclose(square.sum(-1) + norm.sum(-1), 0, atol=1e-13)  # b sums to 1: the sum of the logits is conserved


def test_residuals_of_the_factorisation_are_those_of_its_matrices(x64):
    rng = np.random.default_rng(3)
    b, weight, g, v = rng.dirichlet(np.ones(4), 6), rng.dirichlet(np.ones(6)), rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    mean_b = weight @ b
    second = np.stack([sum(weight[n] * g[n, k] * np.outer(b[n], b[n]) for n in range(6)) for k in range(3)])
    matrix = np.stack([second[k] - np.outer(mean_b, (weight * g[:, k]) @ b) for k in range(3)])
    size, sides = np.linalg.norm(second), [jnp.asarray(x) for x in (b, g, weight, mean_b)]
    each, summed = theory.factorisation_residual(*sides)
    assert np.isclose(each, np.linalg.norm(matrix) / size, rtol=1e-12)
    assert np.isclose(summed, np.linalg.norm(matrix.sum(0)) / size, rtol=1e-12)
    assert np.isclose(theory.residual_share(*sides), each, rtol=1e-9)
    felt, share = theory.felt_residual(*sides, jnp.asarray(v))
    acting, whole = (sum(x[k] @ v[:, k] for k in range(3)) for x in (matrix, second))
    assert np.allclose(felt, acting, rtol=1e-12) and np.isclose(share, np.linalg.norm(acting) / np.linalg.norm(whole), rtol=1e-12)


@pytest.mark.slow
def test_prescribed_gradients_satisfy_the_factorisation(x64):
    rng = np.random.default_rng(2)
    b = rng.dirichlet(np.ones(3), 9)
    mean_b = b.mean(0) + np.array([0.02, -0.01, -0.01])
    g = jax.jit(theory.factorised_gradients)(jnp.asarray(b), jnp.asarray(mean_b), jnp.array([1.0, -2.0]))
    for k, size in enumerate((1.0, -2.0)):
        second = np.einsum("n,nl,nm->lm", g[:, k], b, b)
        assert np.allclose(second, size * np.outer(mean_b, mean_b), atol=1e-12)
        assert np.allclose(second, np.outer(mean_b, g[:, k] @ b), atol=1e-12)
    ones = jnp.ones(9)
    residual, felt = jax.jit(theory.factorisation_residual), jax.jit(theory.felt_residual)
    met = residual(jnp.asarray(b), g, ones, jnp.asarray(mean_b))
    assert theory.residual_share(jnp.asarray(b), g, ones, jnp.asarray(mean_b)) < 1e-6
    assert met.each < 1e-12 and met.summed < 1e-12
    apart = jnp.asarray(rng.normal(size=(9, 1))) * jnp.array([1.0, -1.0])
    split = residual(jnp.asarray(b), g + apart, ones, jnp.asarray(mean_b))
    assert split.each > 0.1 and split.summed < 1e-12
    v = jnp.asarray(rng.normal(size=(3, 2)))
    sides = [(jnp.asarray(b), x, ones, jnp.asarray(mean_b), v) for x in (g, g + apart)]
    assert felt(*sides[0])[1] < 1e-12 < 0.01 < felt(*sides[1])[1]
    chances = jax.jit(theory.sampling_weights)(b, mean_b)
    assert np.allclose(chances @ b, mean_b) and np.isclose(chances.sum(), 1) and chances.min() > 0
    with pytest.raises(jd.UsageError, match="5 samples are not allowed: 3 tokens need at least 6 samples"):
        theory.factorised_gradients(jnp.asarray(b[:5]), jnp.asarray(mean_b), jnp.ones(1))


@pytest.mark.parametrize(("kind", "form"), [("exp", np.exp), ("linear", None), ("sigmoid", lambda u: 1 / (1 + np.exp(-u)))])
def test_the_logits_side_is_the_integral_of_the_attention_over_its_slope(x64, kind, form):
    """Tau times the integral of s/s', by Simpson's rule, in units of the weights' side."""
    names, tau, z = ("exp", "linear", "sigmoid"), 0.6, np.linspace(0.3, 1.1, 2001)
    h = 1e-5
    ratio = z / tau if form is None else form(z / tau) / ((form(z / tau + h) - form(z / tau - h)) / (2 * h))
    integral = tau * integrate.simpson(ratio, x=z)
    code = jd.Code.of(kind, names)
    side = theory.conserved_side(jnp.asarray(z[[0, -1], None]), code, tau)
    unit = theory.square_sum(jnp.ones((1, 1)), 1.0, tau, code)[0]  # r/2 of sum v^2 is 1/2 here
    np.testing.assert_allclose((side[1, 0] - side[0, 0]) / unit / 2, integral, rtol=1e-7)
    assert theory.conserved_side(jnp.asarray([[-1.0, 2.0]]), jd.Code.of("relu", ("linear", "relu"))).tolist() == [[0, 4]]


position, ratio_law, erfcinv, rows, limits = map(
    jax.jit, (linear_theory.position, linear_theory.ratio_law, linear_theory.erfcinv, linear_theory.rows, linear_theory.limits)
)
velocity, blow_up_times, level_remaining = map(
    jax.jit, (linear_theory.velocity, linear_theory.blow_up_times, linear_theory.level_remaining)
)
row_sum_position, row_sum_velocity = map(jax.jit, (linear_theory.row_sum_position, linear_theory.row_sum_velocity))
hyperbolic, softmax_velocity = map(jax.jit, (linear_theory.hyperbolic, linear_theory.softmax_velocity))
SEEDS = st.integers(0, 2**31 - 1)


def normals(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def linear_integrate(field, start, t):
    """An independent solver at its tightest."""
    shape = start.shape
    sol = scipy.integrate.solve_ivp(
        lambda _, y: field(y.reshape(shape)).ravel(), (0, t), start.ravel(), method="DOP853", rtol=1e-12, atol=1e-13
    )
    return sol.y[:, -1].reshape(shape)


def test_erfcinv_keeps_its_digits(x64):
    c = np.concatenate([10.0 ** -np.arange(1.0, 290.0, 17), np.linspace(0.02, 1.98, 41)])
    got = np.asarray(erfcinv(jnp.asarray(c)))
    with mpmath.workdps(40):
        for value, x in zip(c, got, strict=True):
            exact = mpmath.findroot(lambda y, v=value: mpmath.log(mpmath.erfc(y)) - mpmath.log(v), scipy.special.erfcinv(value))
            assert abs(x - float(exact)) <= 2e-15 * max(1.0, abs(float(exact)))


@settings(deadline=None, max_examples=8)
@given(seed=SEEDS, nodes=st.sampled_from([1, 3]), share=st.sampled_from([0.3, 0.9]), scale=st.sampled_from([0.7, 2.0]))
def test_position_solves_the_flow(seed, nodes, share, scale):
    """dV/dt = exp(c + |V|^2 / 2) Δ / A, row by row, from a general start (z0, V0)."""
    with jax.enable_x64(True):
        delta, v0, z0 = normals(seed, (5, nodes), (5, nodes), (5,))
        v0, z0 = 0.5 * v0, 0.5 * z0
        r = rows(jnp.asarray(delta), jnp.asarray(v0), jnp.asarray(z0), scale)
        c = z0 - 0.5 * (v0**2).sum(-1)

        def field(v):
            return np.exp(c + 0.5 * (v**2).sum(-1))[:, None] * delta / scale

        t = share * float(jnp.min(blow_up_times(r)))
        expected = linear_integrate(field, v0, t)
        got = position(r, jnp.asarray(1 - share))
        np.testing.assert_allclose(got, expected, atol=1e-9)
        np.testing.assert_allclose(velocity(r, got), field(expected), rtol=1e-7, atol=1e-9)


def test_thm2_from_zero(x64):
    """erf(v/sqrt 2)/Δ is common to all tokens; blow-up at A sqrt(pi/2)/max|Δ|; the losers' limits are Δ/max Δ."""
    (delta,) = normals(3, (7, 1))
    zero = jnp.zeros((7, 1))
    r = rows(jnp.asarray(delta), zero, jnp.zeros(7), 2.0)
    t_star = 2.0 * np.sqrt(np.pi / 2) / np.abs(delta).max()
    assert float(jnp.min(blow_up_times(r))) == pytest.approx(t_star, rel=1e-14)
    np.testing.assert_allclose(limits(r), np.abs(delta[:, 0]) / np.abs(delta).max(), rtol=1e-14)
    for left in (0.5, 1e-3, 1e-9):
        v = np.asarray(position(r, jnp.asarray(left)))
        np.testing.assert_allclose(
            scipy.special.erf(v / np.sqrt(2)) / delta * t_star, (1 - left) * t_star / np.abs(delta).max(), 1e-12
        )


@pytest.mark.parametrize("level", [2.0, 6.0])
def test_level_is_reached_at_the_predicted_time(x64, level):
    delta, v0, z0 = normals(11, (6, 2), (6, 2), (6,))
    r = rows(jnp.asarray(delta), jnp.asarray(0.3 * v0), jnp.asarray(0.3 * z0))
    v = position(r, level_remaining(r, level))
    assert float(jnp.max(jnp.linalg.norm(v, axis=-1))) == pytest.approx(level, rel=1e-9)


def test_ratio_law_does_not_depend_on_the_clock(x64):
    """The law gives all rows from the winner at any time; with width 2 it does not."""
    delta, v0, z0 = normals(5, (8, 1), (8, 1), (8,))
    r = rows(jnp.asarray(delta), jnp.asarray(0.4 * v0), jnp.asarray(0.4 * z0))
    winner = int(jnp.argmin(blow_up_times(r)))
    for left in (0.9, 0.1, 1e-6):
        w = np.sum(np.asarray(position(r, jnp.asarray(left)) * r.unit), -1)
        np.testing.assert_allclose(ratio_law(r, jnp.asarray(w[winner])), w, rtol=1e-10)
    assert np.max(np.abs(np.asarray(ratio_law(r, jnp.asarray(w[winner]), 2.0)) - w)) > 0.05


def test_row_sum_form_is_the_printed_flow_and_too_fast(x64):
    (delta,) = normals(7, (4, 3))
    t = 0.15
    expected = linear_integrate(lambda v: np.exp(0.5 * v**2).sum(-1, keepdims=True) * delta / 1.5, np.zeros((4, 3)), t)
    got = row_sum_position(jnp.asarray(delta), jnp.asarray([0.0, t]), 1.5)
    np.testing.assert_allclose(got[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(got[1], expected, rtol=2e-5)
    speed = row_sum_velocity(jnp.asarray(delta), jnp.zeros((4, 3)))
    np.testing.assert_allclose(speed, 3 * delta)  # K times the gradient of the layer


def test_row_sum_form_keeps_rows_beyond_their_blow_up(x64):
    (delta,) = normals(7, (4, 3))
    held = row_sum_position(jnp.asarray(delta), jnp.asarray([1e3]))
    np.testing.assert_allclose(jnp.linalg.norm(held[0], axis=-1), 8.0)


@settings(deadline=None, max_examples=6)
@given(seed=SEEDS, nodes=st.sampled_from([1, 3]))
def test_hyperbolic_solves_linear_attention(seed, nodes):
    with jax.enable_x64(True):
        delta, v0, z0 = normals(seed, (4, nodes), (4, nodes), (4,))
        z, v = hyperbolic(jnp.asarray(delta), jnp.asarray(v0), jnp.asarray(z0), jnp.asarray(1.3))
        for row in range(4):
            matrix = np.zeros((nodes + 1, nodes + 1))
            matrix[0, 1:] = matrix[1:, 0] = delta[row]
            expected = scipy.linalg.expm(1.3 * matrix) @ np.concatenate([z0[row : row + 1], v0[row]])
            np.testing.assert_allclose(np.append(z[row], v[row]), expected, rtol=1e-10, atol=1e-12)


def test_a_token_without_saliency_stays(x64):
    delta = jnp.array([[1.0, 0.5], [0.0, 0.0], [0.3, -0.2]])
    v0 = jnp.array([[0.1, 0.2], [0.3, -0.4], [0.0, 0.0]])
    r = rows(delta, v0, jnp.zeros(3))
    v = position(r, jnp.asarray(1e-3))
    assert bool(jnp.all(jnp.isfinite(v)))
    np.testing.assert_allclose(v[1], v0[1], rtol=1e-14)


def test_rank_of_the_velocity_falls_faster_than_that_of_v(x64):
    (delta,) = normals(1, (10, 3))
    delta[0] *= 2 * np.linalg.norm(delta, axis=-1).max() / np.linalg.norm(delta[0])
    r = rows(jnp.asarray(delta), jnp.zeros((10, 3)), jnp.zeros(10))
    for left in (0.1, 0.01, 1e-4):
        v = position(r, jnp.asarray(left))
        assert float(stable_rank(velocity(r, v))) < float(stable_rank(v))
    assert float(stable_rank(velocity(r, v))) < 1 + 1e-4


def test_softmax_velocity(x64):
    delta, z, b = normals(2, (5, 2), (5,), (5,))
    b = scipy.special.softmax(b)
    got = softmax_velocity(jnp.asarray(delta), jnp.asarray(z), jnp.asarray(b), 0.5)
    np.testing.assert_allclose(got, delta * (np.exp(2 * z) / (b @ np.exp(2 * z)))[:, None], rtol=1e-12)


def solved(field, start, ts):
    out = scipy.integrate.solve_ivp(lambda t, v: field(v.reshape(start.shape)).ravel(), (0, ts[-1]), start.ravel(), t_eval=ts,
                                    rtol=1e-10, atol=1e-12)  # fmt: skip
    return out.y.T.reshape(len(ts), *start.shape)


@pytest.mark.usefixtures("x64")
def test_rows_under_an_inserted_gradient():
    mu, ts = np.random.default_rng(0).normal(size=(4, 3)), np.linspace(0, 2, 5)
    v, rate = jax.jit(linear.inserted)(mu, ts)

    def field(v):
        return np.exp(0.5 * (v**2).sum(-1, keepdims=True)) * (mu - v)

    np.testing.assert_allclose(v, solved(field, np.zeros((4, 3)), ts), atol=1e-7)
    np.testing.assert_allclose(rate, [field(x) for x in np.asarray(v)], atol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_rows_under_squared_error_and_their_limits():
    rng = np.random.default_rng(1)
    start, y, p, ts = (
        0.1 * rng.normal(size=(4, 3)),
        2 * rng.normal(size=(4, 3)),
        np.array([0.1, 0.2, 0.3, 0.4]),
        np.linspace(0, 60, 4),
    )

    def field(v):
        gain = np.exp(0.5 * ((v**2).sum(-1) - (start**2).sum(-1)))[:, None]
        return p[:, None] * gain * (y - gain * v)

    solution, rate = jax.jit(linear.trained)(start, y, p, ts)
    np.testing.assert_allclose(solution.ys, solved(field, start, ts), atol=1e-6)
    np.testing.assert_allclose(rate, [field(x) for x in np.asarray(solution.ys)], atol=1e-9)
    mu = np.asarray(linear.lowrank_limits(y))
    np.testing.assert_allclose(np.exp(0.5 * (mu**2).sum(-1, keepdims=True)) * mu, y, rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_without_learned_attention_the_rank_of_even_shares_stays():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(4, 3))
    rate = np.asarray(linear.unattended(np.zeros((4, 3)), y, np.full(4, 0.25), np.array([0.0, 3.0])))
    np.testing.assert_allclose(rate[1], np.exp(-0.75) * rate[0])
    np.testing.assert_allclose(rate[0], 0.25 * y)


start_saliencies = jax.jit(hblt_theory.start_saliencies, static_argnums=3)
arrival_times = jax.jit(hblt_theory.arrival_times)


@jax.jit
def saliency_forms(prior, p, rho, heights):
    joint = hblt_theory.class_joint(prior, p, rho, 5, heights)
    posterior = joint[:, 0]  # at H = 0 the token is the query
    return {
        "joint": joint,
        "together": hblt_theory.conditional(rho, hblt_theory.mean_polarity(prior, p), 5, heights),
        "prior": (hblt_theory.saliency(prior, p, rho, 5, heights, prior), hblt_theory.saliency_at_prior(prior, p, rho, 5)[:, None]),
        "posterior": (
            hblt_theory.saliency(prior, p, rho, 5, heights, posterior),
            hblt_theory.saliency_at_posterior(prior, p, rho, 5, heights),
        ),
    }


@pytest.mark.usefixtures("x64")
def test_numbers_of_the_sparse_limit():
    heights = jnp.arange(1.0, 8.0)
    values = hblt_theory.conditional(0.99, 0.99, 8, heights)
    np.testing.assert_allclose(values, [0.871, 0.745, 0.621, 0.500, 0.381, 0.265, 0.151], atol=5e-4)
    np.testing.assert_allclose(hblt_theory.limit(8, heights), np.arange(7, 0, -1) / 8)


@pytest.mark.usefixtures("x64")
def test_what_a_misread_constant_does():
    height = jnp.array([1.0])
    assert hblt_theory.conditional(0.93, 0.8082, 6, height)[0] == pytest.approx(0.8457, abs=5e-5)
    assert hblt_theory.conditional(0.93, (1 + 0.8082) / 2, 6, height)[0] == pytest.approx(0.8179, abs=5e-5)
    assert hblt_theory.conditional(0.93, 0.9, 6, jnp.array([5.0]))[0] == pytest.approx(0.310, abs=5e-4)


@pytest.mark.usefixtures("x64")
def test_formula_in_high_precision():
    with mpmath.workdps(40):
        rho, rho0 = mpmath.mpf("0.83"), mpmath.mpf("0.37")
        c = rho**6
        expected = [(1 + rho ** (2 * h) - 2 * c * rho0) / (2 * (1 - c * rho0)) for h in range(1, 7)]
    np.testing.assert_allclose(
        hblt_theory.conditional(0.83, 0.37, 7, jnp.arange(1.0, 7.0)), [float(e) for e in expected], rtol=1e-14
    )


@pytest.mark.usefixtures("x64")
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), rho=st.floats(0.3, 0.98))
def test_saliency_forms_agree(seed, rho):
    rng = np.random.default_rng(seed)
    prior, p = rng.dirichlet(np.ones(4)), rng.uniform(-1, 1, 4)
    with jax.enable_x64(True):
        forms = jax.device_get(saliency_forms(prior, p, rho, np.arange(5.0)))
    np.testing.assert_allclose(forms["joint"].sum(0), forms["together"], rtol=1e-12)
    for name in ("prior", "posterior"):
        general, closed = forms[name]
        np.testing.assert_allclose(general, np.broadcast_to(closed, general.shape), atol=1e-14)
    assert np.all(np.diff(np.abs(general).sum(0)) > 0)  # at the posterior it grows with H


def start(depth: int = 3, outputs: int = 6, classes: int = 2, shallow: bool = False, allowed: int | None = None) -> tuple:
    prior = jnp.full(classes, 1 / classes)
    polarity = 1 - 2 * jnp.eye(classes)
    mask = jnp.arange(outputs) < (allowed or outputs)
    return start_saliencies(prior, polarity, 0.7, depth, mask, jnp.bool_(shallow)), prior, polarity, mask


@pytest.mark.usefixtures("x64")
def test_start_saliencies_are_those_of_the_tree():
    saliency, prior, polarity, mask = start(depth=4, outputs=5, classes=3)
    tree = trees.Tree(prior, polarity, trees.symmetric(0.7, 3))
    _, joint = jax.jit(trees.leaf_joint)(tree, 1, 0)
    full = np.zeros((5, 3, 8))
    full[:3] = joint
    expected = full - full.sum(0) / 5
    np.testing.assert_allclose(saliency.near[1], expected[:, 1, [1, 2, 4]], atol=1e-14)
    np.testing.assert_allclose(saliency.far[1, 2], expected[:, 2, 0], atol=1e-14)
    np.testing.assert_allclose(jnp.sum(saliency.query), 1.0)


@pytest.mark.usefixtures("x64")
def test_start_saliencies_without_latents_and_at_the_prior_do_not_depend_on_height():
    shallow = start(depth=4, shallow=True)[0].near
    at_prior = start(depth=4, outputs=6, classes=2, allowed=2)[0].near
    for near in (shallow, at_prior):
        np.testing.assert_allclose(near, np.repeat(near[..., :1], 3, -1), atol=1e-14)
    assert np.all(np.asarray(at_prior)[:, 2:] == 0)


def hblt_integrate(
    saliency: hblt_theory.Saliencies,
    lr: float,
    ratio: float,
    slope: float,
    a: float,
    threshold: float,
    steps: int,
    upper: np.ndarray | None = None,
) -> np.ndarray:
    """Arrival of every (query, token) by fourth-order steps on all tokens and nodes, in NumPy."""
    near, far, query = (np.asarray(x) for x in saliency)
    subtrees, outputs, heights = near.shape
    n = 2**heights
    height = trees.cla_heights(heights)
    delta = np.zeros((subtrees * n, subtrees * n, outputs))
    for q in range(subtrees):
        for s in range(subtrees):
            for i in range(n):
                for j in range(n):
                    if q != s:
                        delta[q * n + i, s * n + j] = far[q, s]
                    elif i != j:
                        delta[q * n + i, s * n + j] = near[s, :, height[i, j] - 1]
    share, k = np.repeat(query, n) / n, lr * slope / a
    if upper is not None:  # gradients at the hidden nodes in place of those at the outputs
        delta = delta @ upper.T

    def field(z: np.ndarray, v: np.ndarray) -> tuple:
        e = share[:, None] * np.exp(z)
        return k * ratio * e * np.einsum("mlo,lo->ml", delta, v), k * np.einsum("ml,mlo->lo", e, delta)

    z, v, arrival = np.zeros(delta.shape[:2]), np.zeros(delta.shape[1:]), np.full(delta.shape[:2], np.inf)
    for t in range(steps):
        a1 = field(z, v)
        a2 = field(z + a1[0] / 2, v + a1[1] / 2)
        a3 = field(z + a2[0] / 2, v + a2[1] / 2)
        a4 = field(z + a3[0], v + a3[1])
        new = z + (a1[0] + 2 * a2[0] + 2 * a3[0] + a4[0]) / 6
        v = v + (a1[1] + 2 * a2[1] + 2 * a3[1] + a4[1]) / 6
        hit = np.isinf(arrival) & (new >= threshold)
        arrival[hit] = t + ((threshold - z[hit]) / (new - z)[hit])
        z = new
        if z[:n, :n][height > 0].min() > threshold:
            break
    return np.array([arrival[:n, :n][height == h].mean() for h in range(1, heights + 1)])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shallow", [False, True])
def test_arrival_times_are_those_of_all_tokens_integrated(shallow):
    saliency = start(shallow=shallow)[0]
    times = arrival_times(saliency, hblt_theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.5, 600.0)
    expected = hblt_integrate(saliency, 0.1, 8.0, 0.5, 8.0, 0.5, 600)
    np.testing.assert_allclose(times, np.broadcast_to(expected, times.shape), rtol=2e-4)
    assert shallow or np.all(np.diff(expected) > 0)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_arrival_times_with_an_upper_layer_are_those_of_all_hidden_nodes_integrated():
    saliency = start()[0]
    upper = np.random.default_rng(0).normal(size=(5, 6)) / 5**0.5
    times = arrival_times(saliency, hblt_theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.3, 600.0, upper.T @ upper)
    expected = hblt_integrate(saliency, 0.1, 8.0, 0.5, 8.0, 0.3, 600, upper)
    np.testing.assert_allclose(times[0], expected, rtol=2e-4)
    assert abs(expected[0] / arrival_times(saliency, hblt_theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.3, 600.0)[0, 0] - 1) > 0.02


@pytest.mark.usefixtures("x64")
def test_logits_that_do_not_arrive_are_infinite():
    times = arrival_times(start()[0], hblt_theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.5, 10.0)
    assert np.all(np.isinf(times))
