"""The constructed network against loops in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.gromov import model

TURN = 2 * np.pi


def drawn(modulus=7, count=5, **how):
    return model.sample_nodes(jax.random.key(3), modulus, count, **how)


def test_logits_are_those_of_a_loop(x64):
    nodes, modulus = drawn(free=True), 7
    theta, phi, psi, chi = map(np.asarray, nodes)
    slow = np.zeros((modulus**2, modulus))
    for i, (a, b) in enumerate(model.pairs(modulus)):
        for c in range(modulus):
            hidden = (np.cos(theta * a + phi) + np.cos(theta * b + psi)) ** 2
            slow[i, c] = np.sum(hidden * np.cos(theta * c + chi))
    np.testing.assert_allclose(jax.jit(model.logits, static_argnums=1)(nodes, modulus), slow, atol=1e-12)
    assert list(model.labels(3)) == [0, 1, 2, 1, 2, 0, 2, 0, 1]


def test_construction_ties_the_phases_and_cycles_the_frequencies(x64):
    tied, free, cycled = drawn(), drawn(free=True), drawn(count=20, cycled=True)
    np.testing.assert_array_equal(tied.chi, tied.phi + tied.psi)
    assert np.min(np.abs(np.asarray(free.chi - free.phi - free.psi))) > 1e-3
    np.testing.assert_allclose(np.asarray(cycled.theta) * 7 / TURN, np.arange(1, 21) % 7, atol=1e-12)
    k = np.asarray(drawn(count=500).theta) * 7 / TURN
    assert set(np.round(k).astype(int)) == set(range(1, 7))


def test_free_output_phases_are_no_better_than_chance(x64):
    def share(key):
        return jnp.mean(jnp.argmax(model.logits(model.sample_nodes(key, 11, 64, free=True), 11), 1) == model.labels(11))

    found = jax.jit(jax.vmap(share))(jax.random.split(jax.random.key(4), 64))
    assert float(found.mean()) == pytest.approx(1 / 11, abs=0.03)
