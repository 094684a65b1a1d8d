"""Sampled sequences: one optimal token each, scores in their range, vectors in the first column; breaches as they are named."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.margin import sequences
from jaxdyn.theories.margin.select import Select

KEY = jax.random.key(0)


def test_sampled(x64):
    s = Select(spread=0.1)
    data, best = sequences.sample(s, KEY, True)
    assert data.features.shape == (4, 5, 36)
    np.testing.assert_array_equal(np.argmax(data.scores, -1), best)
    rest = np.sort(data.scores, -1)[:, :-1]
    assert np.all((rest > 0.1) & (rest < 0.3))
    assert np.all(np.linalg.matrix_rank(data.features.reshape(20, 6, 6)) == 1)
    vector, _ = sequences.sample(s, KEY, False)
    assert np.all(vector.features.reshape(4, 5, 6, 6)[..., 1:] == 0)


def test_breaches(x64):
    data, best = sequences.sample(Select(reversed=1.0), KEY, True)
    assert list(np.argmax(data.scores, -1) == best) == [False, True, True, True]
    data, best = sequences.sample(Select(blended=1.0), KEY, False)
    first = np.delete(data.features[0], int(best[0]), 0)
    np.testing.assert_allclose(data.features[0, best[0]], jnp.mean(first, 0), rtol=1e-12)
