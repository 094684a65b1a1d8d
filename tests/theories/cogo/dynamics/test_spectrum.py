"""Spectra, potentials and the decomposed loss against NumPy written from the formulas."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import spectrum

GROUPS = ("5", "2x2")
decomposed = jax.jit(spectrum.loss, static_argnums=1)
over_pairs = jax.jit(model.loss, static_argnums=(1, 2))


def weights(seed, d, q=3):
    return np.random.default_rng(seed).normal(size=(3, d, q))


def transformed(w):
    """Cyclic groups alone, by the fast Fourier transform."""
    d = w.shape[1]
    return np.stack([np.fft.fft(w[0], axis=0) / d, np.fft.fft(w[1], axis=0) / d, np.conj(np.fft.fft(w[2], axis=0)) / d])


def direct_loss(w, group):
    """One pair and one node at a time."""
    d, total = group.order, 0.0
    for g, h in itertools.product(range(d), repeat=2):
        o = sum((w[0, g, j] + w[1, h, j]) ** 2 * w[2, :, j] for j in range(w.shape[2])) / (2 * d)
        error = o - np.eye(d)[group.add[g, h]]
        total += ((error - error.mean()) ** 2).sum() / d**2
    return total


def printed_loss(z, group):
    """The decomposition as it is printed, sum by sum, with no index of a or b at 0."""
    d, total = group.order, 0.0
    a, b, c = z

    def r(x, y, k):
        return (x * y * c[k]).sum()

    for k in range(1, d):
        part = -2 * r(a[k], b[k], k).real
        part += sum(abs(r(a[i], b[j], k)) ** 2 for i in range(1, d) for j in range(1, d))
        for m in range(d):
            pairs = [(i, group.add[m, group.negative[i]]) for i in range(1, d)]
            s = [sum(r(x[i], x[j], k) for i, j in pairs if j) for x in (a, b)]
            part += abs(s[0] + s[1]) ** 2 / 4 if m == 0 else (abs(s[0]) ** 2 + abs(s[1]) ** 2) / 4
        total += part
    return total / d + 1 - 1 / d


@pytest.mark.parametrize("d", [2, 5, 8])
def test_cyclic_transform_is_the_fast_one(x64, d):
    w = weights(0, d)
    z = spectrum.transform(jnp.asarray(w), parse(str(d)))
    assert np.allclose(z, transformed(w), atol=1e-15)


@pytest.mark.slow
@settings(deadline=None, max_examples=9)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(GROUPS))
def test_real_weights_and_hermitian_spectra(seed, name):
    group = parse(name)
    w = weights(seed, group.order)
    with jax.enable_x64(True):
        z = spectrum.transform(jnp.asarray(w), group)
        assert np.allclose(spectrum.inverse(z, group), w, atol=1e-14)
        assert np.allclose(spectrum.negated(z, group), z, atol=1e-15)
        assert np.isclose((w**2).sum(), group.order * (np.abs(z) ** 2).sum(), rtol=1e-13)
        other = spectrum.transform(spectrum.inverse(1j * z, group), group)
        assert np.allclose(other, 0, atol=1e-14)  # i times a Hermitian spectrum has no real part


@pytest.mark.parametrize("name", GROUPS)
def test_potentials_and_their_sums_one_by_one(x64, name):
    group = parse(name)
    d = group.order
    z = np.random.default_rng(1).normal(size=(3, d, 2, 2)) @ np.array([1, 1j])

    @jax.jit
    def potentials(z):
        auto = spectrum.autopotentials(z)
        return spectrum.potentials(z), auto, spectrum.sums(auto, group)

    r, auto, s = map(np.asarray, potentials(z))
    for i, j, k in itertools.product(range(d), repeat=3):
        assert np.isclose(r[i, j, k], (z[0, i] * z[1, j] * z[2, k]).sum(), rtol=1e-12)
        assert np.isclose(auto[1, i, j, k], (z[1, i] * z[1, j] * z[2, k]).sum(), rtol=1e-12)
    for p, m, k in itertools.product(range(2), range(d), range(d)):
        other = [group.add[m, group.negative[i]] for i in range(d)]
        want = sum((z[p, i] * z[p, other[i]] * z[2, k]).sum() for i in range(d))
        assert np.isclose(s[p, m, k], want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", GROUPS)
def test_decomposition_against_a_loop_over_pairs(x64, name):
    group = parse(name)
    w = weights(2, group.order)
    want = direct_loss(w, group)
    z = spectrum.transform(jnp.asarray(w), group)
    assert np.isclose(decomposed(z, group), want, rtol=1e-12)
    assert np.isclose(over_pairs(jnp.asarray(w), group, "paper"), want, rtol=1e-12)
    dropped = decomposed(z.at[:2, 0].set(0), group)
    assert np.isclose(dropped, printed_loss(np.asarray(z), group), rtol=1e-12)  # so this is the printed form
    assert abs(dropped / want - 1) > 1e-3


def test_single_precision_stays_single(x64):
    group = parse("5")
    w = jnp.ones((3, 5, 2), jnp.float32)
    z = spectrum.transform(w, group)
    assert z.dtype == jnp.complex64 and spectrum.inverse(z, group).dtype == jnp.float32
