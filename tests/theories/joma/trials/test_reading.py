"""Attention along training on a text: what a short run records."""

import jax
import numpy as np
import pytest

from jaxdyn.text import reading
from jaxdyn.text.reading import Reading
from jaxdyn.theories.joma.trials.reading import trial


@pytest.fixture(scope="module")
def short():
    """A tiny run on the text that ships with the package."""
    setting = Reading(layers=2, width=8, hidden=8, max_words=50, columns=2, length=6, steps=4, every=2, windows=2)
    return setting, jax.jit(trial)(setting, jax.random.key(0))


def test_every_layer_at_every_record(short):
    setting, found = short
    entropy = found.recorded["entropy"]
    assert entropy.dims == ("record", "layer") and entropy.value.shape == (3, setting.layers)
    assert np.all((np.asarray(entropy.value) > 0) & (np.asarray(entropy.value) <= reading.uniform_entropy(setting.length) + 1e-6))
    np.testing.assert_array_equal(found.measured["start"].value, entropy.value[0])


def test_the_prediction_is_uniform_attention(short):
    setting, found = short
    np.testing.assert_allclose(found.predicted["start"].value, np.mean(np.log(np.arange(1, setting.length + 1))), rtol=1e-6)
