"""The spectral loss against its expectation over views."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.hyper.spectral import Spectral, loss


def test_loss_is_the_expectation_over_views():
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (200_000, 3))
    views = [np.concatenate([x[:, :1], x[:, 1:] * (1 - rng.random((len(x), 2)))], -1) for _ in range(2)]
    w = rng.normal(size=(2, 3)) / 2
    z, other = views[0] @ w.T, np.roll(views[1], 1, 0) @ w.T
    direct = -2 * np.mean(np.sum(z * (views[1] @ w.T), -1)) + np.mean(np.sum(z * other, -1) ** 2)
    value = loss(jnp.asarray(w), jnp.array([1, 0.25, 0.25]), jnp.array([1, 1 / 3, 1 / 3]))
    assert float(value) == pytest.approx(direct, abs=0.03)  # 5 standard errors of 200000 products


@pytest.mark.parametrize("wrong", [{"relevant": 9.0}, {"mean": 0.9}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Spectral(**wrong)
