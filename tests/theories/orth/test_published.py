"""The published ranges begin where random directions of the width are."""

import numpy as np
import scipy.special

from jaxdyn.theories.orth.published import PYTHIA


def test_no_model_is_far_below_random_directions():
    r"""The mean |cos| of random directions is Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2))."""
    _, width, low, high = np.array([*PYTHIA.values()]).T
    random = np.exp(scipy.special.gammaln(width / 2) - scipy.special.gammaln((width + 1) / 2)) / np.sqrt(np.pi)
    np.testing.assert_allclose(low, random, rtol=0.05)
    assert np.all(high > 1.3 * random) and np.all(np.diff(width) >= 0)
