"""The path of zero loss, norms of products and the equilibrium with decay, against NumPy written from their statements."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import model
from jaxdyn.theories.cogo.dynamics import occam, semiring, solutions

FIVE = parse("5")


@functools.partial(jax.jit, static_argnums=(0, 1))
def solution(group, seed=0):
    n = solutions.sample(jax.random.key(seed), group)
    return solutions.f6(group, n.nu, n.phases)


@functools.partial(jax.jit, static_argnums=(0, 2))
def factor(group, seed=0, order=3):
    y = semiring.random(jax.random.key(seed), group, order)
    return occam.leading(occam.normalized(y), group)


path = jax.jit(occam.path)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 1000), t=st.floats(0, 3))
def test_every_point_keeps_the_potentials_and_the_real_weights(seed, t):
    with jax.enable_x64(True):
        y = factor(FIVE, seed)
        z = np.asarray(path(y, jnp.asarray(t)).z)
    r = (z[0] * z[1] * z[2]).sum(-1)
    assert np.allclose(r[1:], 1, atol=1e-9) and np.allclose(z[:, 0], 0)
    assert np.allclose(z, z[:, FIVE.negative].conj(), atol=1e-9 * np.abs(z).max())


def test_ends_of_the_legs(x64):
    y = factor(FIVE)
    z = [np.asarray(path(y, jnp.asarray(float(t))).z)[:, 1:] for t in range(4)]
    a, b, c = np.asarray(y.z)[:, 1:]
    assert np.allclose(z[0], np.stack([a, b, c]), rtol=1e-14)
    assert np.allclose(z[1][:2], np.stack([a, b])) and np.allclose(z[1][2, :, 0], 1 / (a * b)[:, 0])
    assert np.all(z[1][2, :, 1:] == 0) and np.all(z[2][:, :, 1:] == 0)
    assert np.allclose(z[3], np.asarray(occam.pseudo_identity(y).z)[:, 1:])
    half = np.asarray(path(y, jnp.asarray(2.5)).z)[0, 1:, 0]
    assert np.allclose(half**2, a[:, 0]) and np.all(half.real > 0)  # the principal root


def test_no_loss_on_the_path_even_with_a_real_character(x64):
    group = parse("6")
    x, y = solution(group), factor(group, 2, order=4)
    assert np.all(np.isfinite(y.z))
    ts = jnp.linspace(0, 3, 7)
    loss = jax.jit(jax.vmap(lambda t: model.fit(semiring.weights(semiring.multiply(occam.path(y, t), x), group), group).loss))(ts)
    assert np.max(loss) < 1e-24
    line = jax.jit(lambda t: model.fit(semiring.weights(semiring.multiply(occam.straight(y, t), x), group), group).loss)(1.5)
    assert line > 1e-3


@pytest.mark.slow
def test_a_leader_is_chosen_with_positive_entries_at_real_characters(x64):
    group = parse("2x2")
    z = jnp.ones((3, 4, 3), jnp.complex128).at[0, 1, 0].set(-1).at[:, 2, 1].set(0.1)
    y = occam.leading(semiring.element(z), group)
    assert np.allclose(y.z[..., 0], semiring.element(z).z[..., 2])
    none = occam.leading(semiring.element(z.at[0, 3].set(-1)), group)
    assert np.all(np.isnan(none.z))


@functools.partial(jax.jit, static_argnums=2)
def norms(x, key, order):
    """A random product with x: its potentials; its energy, the least of all products and that of x."""
    y = occam.normalized(semiring.random(key, FIVE, order))
    return semiring.multiply(y, x).z, occam.product_energy(y, x), occam.least_energy(x), semiring.energy(x)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 1000), order=st.sampled_from([1, 3]), tilt=st.sampled_from([1.0, 2.0]))
def test_norms_of_products(seed, order, tilt):
    with jax.enable_x64(True):
        x = solution(FIVE)
        x = x._replace(z=x.z * jnp.asarray([tilt, 1, 1 / tilt])[:, None, None])
        product, found, least, alone = (np.asarray(v) for v in norms(x, jax.random.key(seed), order))
    assert found == pytest.approx((np.abs(product) ** 2).sum(), rel=1e-12)
    assert found >= least * (1 - 1e-12)
    assert alone == pytest.approx(21.805, abs=1e-3) if tilt == 1 else alone > 1.7 * least
    assert tilt != 1 or least == pytest.approx(alone, rel=1e-12)


def test_published_counterexample(x64):
    """The norm of z' with a doubled and c halved falls when y halves a and doubles c."""
    x = solution(parse("7"))
    x = x._replace(z=x.z * jnp.asarray([2, 1, 0.5])[:, None, None])
    assert float(occam.imbalance(x)) == pytest.approx(15) and float(occam.imbalance(solution(parse("7")))) < 1e-12
    assert float(semiring.energy(x)) == pytest.approx(57.24, abs=5e-3)
    assert float(occam.least_energy(x)) == pytest.approx(32.71, abs=5e-3)


def test_equilibrium_with_weight_decay():
    """The minimum of loss plus decay over the scale of all layers, by scanning it."""
    decay, energy, d = 0.01, 21.8, 5
    s = np.linspace(0.8, 1, 200_001)
    total = (d - 1) / d * (1 - s**3) ** 2 + decay / 2 * d * energy * s**2
    with jax.enable_x64(True):
        got = float(occam.at_equilibrium(energy, jnp.asarray(decay), FIVE))
        assert float(occam.at_equilibrium(energy, jnp.asarray(0.0), FIVE)) == 1
    assert got == pytest.approx(s[np.argmin(total)], abs=2e-6)
