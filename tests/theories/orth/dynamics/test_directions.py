"""Formulas of random directions against integrals and draws."""

import jax
import mpmath as mp
import numpy as np
import pytest

from jaxdyn.theories.orth.dynamics import directions


def test_mean_absolute_cosine_is_the_integral_and_has_the_published_values(x64):
    for d in (3, 17, 64):
        power = (mp.mpf(d) - 3) / 2
        mean = mp.quad(lambda c, p=power: c * (1 - c**2) ** p, [0, 1]) / mp.quad(lambda c, p=power: (1 - c**2) ** p, [0, 1])
        assert float(directions.mean_absolute_cosine(d)) == pytest.approx(float(mean), rel=1e-10)
    published = {512: 0.03528, 768: 0.02880, 1024: 0.02494, 2048: 0.01763, 2560: 0.01577}
    for d, value in published.items():
        assert float(directions.mean_absolute_cosine(float(d))) == pytest.approx(value, abs=6e-6)
        ratio = directions.approximate_mean(d) / float(directions.mean_absolute_cosine(float(d)))
        assert ratio == pytest.approx(1 - 1 / (4 * d), abs=1 / d**2)


def test_quantile_and_gram_error_are_those_of_draws():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(2000, 16))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    gram = u @ u.T
    cosines = np.abs(gram[np.triu_indices(2000, 1)])
    assert np.mean(cosines < directions.cosine_quantile(16, 0.99)) == pytest.approx(0.99, abs=5e-4)
    error = np.linalg.norm(gram - np.eye(2000))
    assert error == pytest.approx(directions.gram_error(2000, 16), rel=5e-3)
    assert error > np.sqrt(2000 * (2000 - 16) / 16)


@pytest.mark.parametrize(("d", "m"), [(8, 0.5), (64, 0.3), (512, 0.1), (2048, 0.3)])
def test_mean_cosine_at_a_common_mean_is_the_squared_mean_direction(x64, d, m):
    x = mp.mpf(d) * m**2 / 2
    length = mp.sqrt(x) * mp.gamma(mp.mpf(d + 1) / 2) / mp.gamma(mp.mpf(d) / 2 + 1) * mp.hyp1f1(0.5, mp.mpf(d) / 2 + 1, -x)
    value = float(jax.jit(directions.mean_cosine)(float(d), m))
    assert value == pytest.approx(float(length**2), rel=1e-9)
    drawn = m + np.random.default_rng(1).normal(size=(20_000, d if d < 100 else 64))
    if d < 100:
        direction = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).mean(0)
        assert float(direction @ direction) == pytest.approx(value, abs=5 * (d / 20_000) ** 0.5 * value**0.5)
    assert value == pytest.approx(directions.common_share(m), rel=3 / d + 0.01)
