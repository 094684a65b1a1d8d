"""Theorem 1 of JoMA: formulas against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate

import jaxdyn as jd
from jaxdyn.theories.joma.dynamics import invariants as theory

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
