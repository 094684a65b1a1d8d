"""Jacobian, velocities and infinite width against finite differences and samples in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import relax as theory
from jaxdyn.theories.cogo.dynamics import spectrum

jacobian = jax.jit(theory.jacobian)
velocity = jax.jit(theory.velocity, static_argnums=1)
spectrum_velocity = jax.jit(theory.spectrum_velocity, static_argnums=1)
slope = jax.jit(theory.slope, static_argnums=1)
transform = jax.jit(spectrum.transform, static_argnums=1)
gradient = jax.jit(jax.grad(model.loss), static_argnums=(1, 2))


def every(z):
    a, b, c = z
    return np.stack([np.einsum("aj,bj,cj->abc", x, y, c) for x, y in ((a, b), (a, a), (b, b))])


def case(name, seed=0, q=3):
    group = parse(name)
    w = np.random.default_rng(seed).normal(size=(3, group.order, q))
    return group, w, np.asarray(transform(w, group))


def test_jacobian_by_central_differences(x64):
    _, _, z = case("3", q=2)
    j = np.asarray(jacobian(jnp.asarray(z)))
    assert j.shape == (3, 3, 3, 3, 3, 3, 2)
    for at in np.ndindex(z.shape):
        step = np.zeros_like(z)
        step[at] = 1e-5
        slope = (every(z + step) - every(z - step)) / 2e-5  # exact up to rounding and a cubic term of 1e-10
        assert np.allclose(j[(..., *at)], slope, atol=1e-9)


@pytest.mark.parametrize("name", ["3", "2x2"])
def test_velocities_by_a_small_step_of_gradient_descent(x64, name):
    group, w, z = case(name)
    descent = -np.asarray(gradient(jnp.asarray(w), group, "paper"))
    h = 1e-5
    ahead, behind = (np.asarray(transform(w + s * h * descent, group)) for s in (1, -1))
    assert np.allclose((ahead - behind) / (2 * h), spectrum_velocity(jnp.asarray(z), group), atol=1e-9)
    assert np.allclose((every(ahead) - every(behind)) / (2 * h), velocity(jnp.asarray(z), group), atol=1e-8)


def test_slope_is_the_derivative_of_the_loss_by_potentials(x64):
    """For any complex potentials: the loss as a sum of squares, conjugate potentials taken as variables of their own."""
    group = parse("4")
    d, rng = 4, np.random.default_rng(1)
    r = rng.normal(size=(3, d, d, d, 2)) @ np.array([1, 1j])

    def loss(r):
        total = 0.0
        s = np.zeros((2, d, d), complex)
        for p, m, k, i in itertools.product(range(2), range(d), range(d), range(d)):
            s[p, m, k] += r[1 + p, i, (m - i) % d, k]
        for k in range(1, d):
            total += -2 * r[0, k, k, k].real + (abs(r[0, 1:, 1:, k]) ** 2).sum()
            total += abs(r[0, 0, 0, k] + s[:, 0, k].sum() / 2) ** 2
            total += sum(abs(r[0, m, 0, k] + s[0, m, k] / 2) ** 2 + abs(r[0, 0, m, k] + s[1, m, k] / 2) ** 2 for m in range(1, d))
        return total / d

    got = np.asarray(slope(r, group))
    h = 1e-5
    for at in np.ndindex(r.shape):
        parts = []
        for unit in (1, 1j):
            step = np.zeros_like(r)
            step[at] = h * unit
            parts.append((loss(r + step) - loss(r - step)) / (2 * h))
        assert abs(parts[0] + 1j * parts[1] - got[at]) < 1e-8


@pytest.mark.parametrize("name", ["5", "6"])
def test_metrics_are_those_of_the_jacobian(x64, name):
    group, _, z = case(name)
    j = np.asarray(jacobian(jnp.asarray(z)))
    n = group.order - 1
    cross = j[0, 1:, 1:, 1:].reshape(n**3, -1)
    assert np.allclose(jax.jit(theory.cross_gram)(z[:, 1:]), cross @ cross.conj().T, atol=1e-14)
    half, minus = group.pairs, group.negative[group.pairs]
    auto = np.stack([j[1 + p, half, minus, 1:] for p in range(2)]).reshape(2 * len(half) * n, -1)
    assert np.allclose(jax.jit(theory.auto_gram, static_argnums=1)(z, group), auto @ auto.conj().T, atol=1e-14)


def test_off_diagonal_statistics(x64):
    gram = np.array([[4.0, 1j, 0], [-1j, 1.0, 2.0], [0, 2.0, 1.0]])
    mean, rms, largest = theory.off_diagonal(jnp.asarray(gram))
    assert mean == pytest.approx(2.0) and rms == pytest.approx(np.sqrt((2 * 1 + 2 * 4) / 6)) and largest == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["3", "4"])
def test_spread_is_the_mean_square_over_draws(name):
    """Sums over nodes of independent terms: the mean square at width 4, in 20000 draws, within five standard errors."""
    group = parse(name)
    d, q, rng = group.order, 4, np.random.default_rng(0)
    ratios = []
    for _ in range(20):
        w = rng.normal(size=(1000, 3, d, q))
        z = np.fft.fft(w, axis=2)[:, :, 1:] / d
        z[:, 2] = z[:, 2].conj()
        a, b, c = z[:, 0], z[:, 1], z[:, 2]
        n = d - 1
        eye = np.eye(n)
        pairs = {}
        for key, (x, y) in {"bc": (b, c), "ac": (a, c), "ab": (a, b)}.items():
            both = (x[:, :, None] * y[:, None]).reshape(len(z), n * n, q)
            pairs[key] = (both @ both.conj().swapaxes(1, 2)).reshape(len(z), n, n, n, n)
        gram = np.einsum("ax,rbcyz->rabcxyz", eye, pairs["bc"]) + np.einsum("by,racxz->rabcxyz", eye, pairs["ac"])
        gram = (gram + np.einsum("cz,rabxy->rabcxyz", eye, pairs["ab"])).reshape(len(z), n**3, n**3)
        off = (np.abs(gram) ** 2).sum((1, 2)) - (np.abs(np.diagonal(gram, axis1=1, axis2=2)) ** 2).sum(1)
        ratios.append(off / (n**3 * (n**3 - 1)) / (q * 3 / d**2) ** 2)
    ratios = np.concatenate(ratios)
    want = theory.spread(group, q) ** 2
    assert abs(ratios.mean() - want) < 5 * ratios.std() / len(ratios) ** 0.5
    assert ratios.std() / len(ratios) ** 0.5 < 0.05 * want


def test_known_constants():
    assert theory.coupling(parse("7")) == pytest.approx(1 / (4 * 7**0.5))
    assert theory.spread(parse("5"), 4096) == pytest.approx(0.00719, rel=1e-3)
    assert theory.kappa(2.0, 5) == pytest.approx(48 / 25)
    assert theory.rate(1.0, 100.0, 5) == pytest.approx(2 * 100 * 3 / 625)


@pytest.mark.parametrize("name", ["5", "2x3"])
def test_autopotentials_stay_coupled(x64, name):
    group, q = parse(name), 4096
    w = np.random.default_rng(0).normal(size=(3, group.order, q))
    mean, rms, _ = theory.off_diagonal(theory.auto_gram(spectrum.transform(jnp.asarray(w), group), group))
    assert float(rms / mean) == pytest.approx(theory.coupling(group), rel=0.05)


def test_relaxation_ends_at_the_goal(x64):
    start = jnp.ones((2, 2, 2), jnp.complex128) * (2 + 1j)
    r = theory.relaxed(start, jnp.asarray([0.0, 1.0, 50.0]))
    assert np.allclose(r[0], start) and np.allclose(r[2], theory.goal(2), atol=1e-10)
    assert np.isclose(r[1, 0, 0, 0], 1 + (1 + 1j) / np.e) and np.isclose(r[1, 0, 1, 0], (2 + 1j) / np.e)


@pytest.mark.parametrize("name", ["6"])
def test_modified_loss_is_the_cross_terms(x64, name):
    group, w, z = case(name)
    parts = jax.jit(spectrum.terms, static_argnums=1)(jnp.asarray(z), group)
    got = jax.jit(theory.modified_loss, static_argnums=1)(jnp.asarray(w), group)
    assert np.isclose(got, (parts.target + parts.cross) / group.order, rtol=1e-13)


@pytest.mark.slow
def test_the_starting_rate_is_the_decoupled_one(x64):
    group, hidden = parse("7"), 4096
    z = spectrum.transform(model.to_scale(model.init(jax.random.key(0), group, hidden, "float64"), group, "paper"), group)
    a, b, c = np.mean(np.abs(np.asarray(z)[:, 1:]) ** 2, (1, 2))
    assert theory.start_rate(7, hidden) == pytest.approx(2 * hidden * (b * c + a * c + a * b) / 49, rel=0.03)  # 24576 draws
