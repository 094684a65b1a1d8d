"""The talks' transform, and the settings of the trial on the loss."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.trials import loss as trials


def test_the_talks_transform(x64):
    w = np.random.default_rng(3).normal(size=(3, 4, 3))
    want = np.einsum("km,pmj->pkj", np.exp(1j * np.outer(np.arange(4), np.arange(4)) / 4), w)
    assert np.allclose(trials.printed_transform(jnp.asarray(w)), want, atol=1e-14)


@pytest.mark.parametrize("fields", [{"groups": ("1",)}, {"groups": ()}, {"hidden": 0}, {"std": 0.0}, {"held_out": 1.0}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        trials.Weights(**fields)
