"""The progress measures against plain sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.nanda import model
from jaxdyn.theories.nanda.dynamics import progress

P = 7
AMPLITUDES, RESTRICTED, EXCLUDED, KEY_PART = map(
    jax.jit, (progress.amplitudes, progress.restricted, progress.excluded, progress.key_part)
)


def cube(seed=2):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(P * P, P)))


def test_key_part_is_the_projection_on_waves_of_the_sum(x64):
    z, keys = cube(), jnp.array([True, False, True])
    s = np.asarray(model.all_pairs(P)).sum(1)
    expected = np.zeros((P * P, P))
    for k in (1, 3):
        for wave in (np.cos(2 * np.pi * k * s / P), np.sin(2 * np.pi * k * s / P)):
            unit = wave / np.linalg.norm(wave)
            expected += np.outer(unit, unit @ np.asarray(z))
    np.testing.assert_allclose(KEY_PART(z, keys), expected, atol=1e-12)
    both = RESTRICTED(z, keys) + EXCLUDED(z, keys)
    np.testing.assert_allclose(both, z + jnp.mean(z, 0), atol=1e-12)


def test_amplitudes_are_least_squares_on_any_pairs(x64):
    z, pairs = cube(3), model.all_pairs(P)
    seen = jnp.arange(P * P) % 3 == 0
    a, b, c = np.ogrid[:P, :P, :P]
    columns = [np.cos(2 * np.pi * k * (a + b - c) / P).reshape(P * P, P)[np.asarray(seen)].ravel() for k in (1, 2, 3)]
    expected = np.linalg.lstsq(np.stack(columns, 1), np.asarray(z)[np.asarray(seen)].ravel(), rcond=None)[0]
    np.testing.assert_allclose(AMPLITUDES(z, pairs, seen), expected, rtol=1e-10)


def test_the_algorithm_is_all_key_part_and_its_amplitudes_come_back(x64):
    alpha, pairs = jnp.array([3.0, 0.0, -2.0]), model.all_pairs(P)
    z = jax.jit(progress.trig_logits, static_argnums=2)(alpha, pairs, P)
    np.testing.assert_allclose(AMPLITUDES(z, pairs), alpha, atol=1e-12)
    keys = progress.key_frequencies(alpha, 0.99)
    np.testing.assert_array_equal(keys, [True, False, True])
    np.testing.assert_allclose(RESTRICTED(z, keys), z, atol=1e-12)
    np.testing.assert_allclose(model.loss(EXCLUDED(z, keys), model.answers(pairs, P)), np.log(P), rtol=1e-12)
    np.testing.assert_array_equal(progress.key_frequencies(alpha, 0.5), [True, False, False])


@pytest.mark.slow
def test_spectrum_obeys_parseval_and_gini_its_limits(x64):
    embed = jax.random.normal(jax.random.key(4), (P, 5), jnp.float64)
    total = jnp.sum(progress.spectrum(embed) ** 2) + P * jnp.sum(jnp.mean(embed, 0) ** 2)
    np.testing.assert_allclose(total, jnp.sum(embed**2), rtol=1e-12)
    assert float(progress.gini(jnp.ones(4, jnp.float64))) == pytest.approx(0, abs=1e-12)
    assert float(progress.gini(jnp.array([0.0, 5.0, 0.0, 0.0]))) == pytest.approx(0.75)
    x = np.random.default_rng(0).uniform(size=9)
    pairwise = np.abs(x[:, None] - x).sum() / (2 * x.size * x.sum())
    assert float(progress.gini(jnp.asarray(x))) == pytest.approx(pairwise)


def test_even_numbers_of_residues_are_refused():
    with pytest.raises(jd.UsageError, match="odd p"):
        progress.frequencies(6)
